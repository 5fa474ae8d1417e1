// What identifies a launch that was recorded before: its arguments, and the instruction that makes it.
#pragma once

#include <Python.h>
#include <torch/csrc/autograd/python_variable.h>

#include <string>

#include "python_objects.h"

// The launch is not known, or something is going on that only the Python form handles.
struct NotKnown {};

// The arguments of a launch and where it is made, as bytes that are equal for equal launches.
class Key {
 public:
  Key() { bytes_.reserve(256); }

  void add(const void* data, size_t size) { bytes_.append(static_cast<const char*>(data), size); }

  template <typename Value>
  void add(char kind, Value value) {
    bytes_.push_back(kind);
    add(&value, sizeof value);
  }

  // Throws NotKnown for a value that has no such form.
  void add_argument(PyObject* value) {
    if (THPVariable_CheckExact(value)) return add_tensor(THPVariable_Unpack(value));
    if (PyLong_CheckExact(value)) {
      int overflow = 0;
      add('i', PyLong_AsLongLongAndOverflow(value, &overflow));
      if (overflow != 0) throw NotKnown();
    } else if (PyFloat_CheckExact(value)) {
      add('f', PyFloat_AS_DOUBLE(value));
    } else if (PyBool_Check(value) || value == Py_None) {
      add('o', value);
    } else {
      throw NotKnown();
    }
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void add_tensor(const at::Tensor& tensor) {
    const auto* tensor_impl = tensor.unsafeGetTensorImpl();
    if (!tensor_impl->has_storage() || tensor_impl->is_python_dispatch()) throw NotKnown();
    const auto* storage = tensor_impl->unsafe_storage().unsafeGetStorageImpl();
    add('t', storage->data());
    add('+', tensor_impl->storage_offset());
    add('n', storage->nbytes());
    if (!shaped_) {  // the layouts of the others follow from it, as the code is generated for them
      shaped_ = true;
      auto sizes = tensor_impl->sizes();
      add(sizes.data(), sizes.size() * sizeof(int64_t));
    }
  }

  std::string bytes_;
  bool shaped_ = false;
};
