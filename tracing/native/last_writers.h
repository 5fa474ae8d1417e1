// The compiled form of tracing/record/memory/last_writers.py; both read and change one dictionary.
#pragma once

#include <Python.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "python_objects.h"

// A tensor argument of a launch that was recorded before.
struct Argument {
  long position;
  Object storage;  // its number
  Object meta;     // a TensorMeta
};

// All methods are called with the GIL held, and throw PythonError.
class LastWriters {
 public:
  using Operators = std::vector<std::pair<long, Object>>;  // argument position, name of an operator

  // writers: a tracing.record.memory.last_writers.LastWriters
  explicit LastWriters(const Object& writers)
      : writes_(attribute<"writes">(writers)), between_(attribute<"between">(writers)) {}

  // An operator wrote a tensor. alone: ((TensorMeta, name of the operator),), an object that is kept for it
  void wrote(PyObject* storage, const Object& alone) {
    const Object earlier = writes_to(storage);
    if (earlier.get() == alone.get()) return;
    if (!earlier) return remember(storage, alone);
    PyObject* write = PyTuple_GET_ITEM(alone.get(), 0);
    Writes writes = left(earlier, meta_of(write));
    if (writes.empty()) return remember(storage, alone);
    writes.push_back(Object::borrowed(write));
    remember(storage, tuple(writes));
  }

  // A tensor is new: earlier writes to its address were to another block.
  void allocated(PyObject* storage) {
    if (writes_to(storage)) remember(storage, none_);
  }

  // The operators that last wrote what a launch reads; the launch becomes the writer of what it writes.
  Operators of(const std::vector<Argument>& reads, const std::vector<Argument>& writes) {
    Operators operators;
    for (const Argument& read : reads) {
      const Object write = last_to(read);
      if (write && operator_of(write.get()) != Py_None)
        operators.emplace_back(read.position, Object::borrowed(operator_of(write.get())));
    }
    for (const Argument& write : writes) launched(write);
    return operators;
  }

 private:
  using Writes = std::vector<Object>;

  static constexpr size_t kRemembered = 32;      // writes of one storage, in addition to the last one
  static constexpr size_t kRelations = 1 << 16;  // that are remembered

  static PyObject* meta_of(PyObject* write) { return PyTuple_GET_ITEM(write, 0); }
  static PyObject* operator_of(PyObject* write) { return PyTuple_GET_ITEM(write, 1); }  // None: a launch

  // Null: there are none.
  Object writes_to(PyObject* storage) const {
    PyObject* writes = PyDict_GetItemWithError(writes_.get(), storage);
    if (writes == nullptr && PyErr_Occurred()) throw PythonError();
    return writes == none_.get() ? Object() : Object::borrowed(writes);
  }

  // The last write to bytes that a launch reads; null: there is none.
  Object last_to(const Argument& read) {
    const Object writes = writes_to(read.storage.get());
    for (Py_ssize_t i = writes ? PyTuple_GET_SIZE(writes.get()) : 0; i-- > 0;) {
      PyObject* write = PyTuple_GET_ITEM(writes.get(), i);
      if (relation(read.meta.get(), meta_of(write)) != 'd') return Object::borrowed(write);
    }
    return Object();
  }

  void launched(const Argument& argument) {
    const Object earlier = writes_to(argument.storage.get());
    if (!earlier) return;
    Writes writes = left(earlier, argument.meta.get());
    const bool by_operator = std::any_of(writes.begin(), writes.end(),
                                         [](const Object& write) { return operator_of(write.get()) != Py_None; });
    if (!by_operator) return allocated(argument.storage.get());
    writes.push_back(checked(PyTuple_Pack(2, argument.meta.get(), Py_None)));
    remember(argument.storage.get(), tuple(writes));
  }

  // The writes that a later one does not overwrite completely.
  Writes left(const Object& earlier, PyObject* meta) {
    Writes writes;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(earlier.get()); ++i) {
      PyObject* write = PyTuple_GET_ITEM(earlier.get(), i);
      if (relation(meta_of(write), meta) != 'i') writes.push_back(Object::borrowed(write));
    }
    if (writes.size() > kRemembered) writes.erase(writes.begin(), writes.end() - kRemembered);
    return writes;
  }

  static Object tuple(const Writes& writes) {
    Object all = checked(PyTuple_New(static_cast<Py_ssize_t>(writes.size())));
    for (size_t i = 0; i < writes.size(); ++i) PyTuple_SET_ITEM(all.get(), i, Object(writes[i]).release());
    return all;
  }

  void remember(PyObject* storage, const Object& writes) {
    checked(PyDict_SetItem(writes_.get(), storage, writes.get()));
  }

  // "disjoint", "inside", "overlap": its first letter
  char relation(PyObject* of, PyObject* to) {
    if (of == to) return 'i';
    auto known = relations_.find({of, to});
    if (known != relations_.end()) return known->second;
    if (relations_.size() >= kRelations) {
      relations_.clear();
      metas_.clear();
    }
    Object text = checked(PyObject_CallFunctionObjArgs(between_.get(), of, to, nullptr));
    const char* name = PyUnicode_AsUTF8(text.get());
    if (name == nullptr) throw PythonError();
    metas_.push_back(Object::borrowed(of));  // alive, so that their addresses stay their own
    metas_.push_back(Object::borrowed(to));
    return relations_[{of, to}] = name[0];
  }

  Object none_ = checked(PyTuple_New(0));  // the only empty tuple: of a storage that was allocated anew
  Object writes_;   // dict: number of a storage -> ((TensorMeta, name of an operator or None), ...)
  Object between_;  // (TensorMeta, TensorMeta) -> Relation
  std::map<std::pair<PyObject*, PyObject*>, char> relations_;
  std::vector<Object> metas_;
};
