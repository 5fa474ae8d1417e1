// What identifies a launch that was recorded before: its arguments, and the instruction that makes it.
#pragma once

#include <Python.h>
#include <torch/csrc/autograd/python_variable.h>

#include <bit>

#include "python_objects.h"
#include "words.h"

// The launch is not known, or something is going on that only the Python form handles.
struct NotKnown {};

inline int64_t word(const void* address) { return reinterpret_cast<int64_t>(address); }

// Appends the arguments of a launch, in their order, to its key.
class LaunchArguments {
 public:
  explicit LaunchArguments(Key& key) : key_(key) {}

  // Throws NotKnown for a value that has no such form.
  void add(PyObject* value) {
    if (THPVariable_CheckExact(value)) return add_tensor(THPVariable_Unpack(value));
    if (PyLong_CheckExact(value)) {
      int overflow = 0;
      key_.append({'i', PyLong_AsLongLongAndOverflow(value, &overflow)});
      if (overflow != 0) throw NotKnown();
    } else if (PyFloat_CheckExact(value)) {
      key_.append({'f', std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(value))});
    } else if (PyBool_Check(value) || value == Py_None) {
      key_.append({'o', word(value)});
    } else {
      throw NotKnown();
    }
  }

 private:
  void add_tensor(const at::Tensor& tensor) {
    const auto* tensor_impl = tensor.unsafeGetTensorImpl();
    if (!tensor_impl->has_storage() || tensor_impl->is_python_dispatch()) throw NotKnown();
    const auto* storage = tensor_impl->unsafe_storage().unsafeGetStorageImpl();
    key_.append({'t', word(storage->data()), tensor_impl->storage_offset(), static_cast<int64_t>(storage->nbytes())});
    if (!shaped_) {  // the layouts of the others follow from it, as the code is generated for them
      shaped_ = true;
      const auto sizes = tensor_impl->sizes();
      key_.append(sizes.begin(), sizes.end());
    }
  }

  Key& key_;
  bool shaped_ = false;
};
