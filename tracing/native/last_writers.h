// The compiled form of tracing/record/memory/last_writers.py for launches; both read and change one dictionary.
#pragma once

#include <Python.h>

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

class LastWriters {
 public:
  using Operators = std::vector<std::pair<long, Object>>;  // argument position, name of an operator

  LastWriters() = default;
  // writers: a tracing.record.memory.last_writers.LastWriters
  explicit LastWriters(const Object& writers)
      : writes_(attribute<"writes">(writers)), between_(attribute<"between">(writers)) {}

  // The operators that last wrote what a launch reads; the launch becomes the writer of what it writes.
  Operators of(const std::vector<Argument>& reads, const std::vector<Argument>& writes) {
    Operators operators;
    for (const Argument& read : reads) {
      PyObject* earlier = writes_to(read);
      for (Py_ssize_t i = earlier ? PyList_GET_SIZE(earlier) : 0; i-- > 0;) {
        PyObject* write = PyList_GET_ITEM(earlier, i);
        if (relation(read.meta.get(), PyTuple_GET_ITEM(write, 0)) == 'd') continue;
        PyObject* name = PyTuple_GET_ITEM(write, 1);
        if (name != Py_None) operators.emplace_back(read.position, Object::borrowed(name));
        break;
      }
    }
    for (const Argument& write : writes) overwrite(write);
    return operators;
  }

 private:
  static constexpr size_t kRemembered = 32;      // writes of one storage
  static constexpr size_t kRelations = 1 << 16;  // that are remembered

  PyObject* writes_to(const Argument& argument) {
    PyObject* found = PyDict_GetItemWithError(writes_.get(), argument.storage.get());
    if (found == nullptr && PyErr_Occurred()) throw PythonError();
    return found;
  }

  void overwrite(const Argument& argument) {
    PyObject* earlier = writes_to(argument);
    if (earlier == nullptr) return;
    std::vector<Object> left;
    bool by_operator = false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(earlier); i++) {
      PyObject* write = PyList_GET_ITEM(earlier, i);
      if (relation(PyTuple_GET_ITEM(write, 0), argument.meta.get()) != 'i')
        left.push_back(Object::borrowed(write));
    }
    if (left.size() > kRemembered) left.erase(left.begin(), left.end() - kRemembered);
    for (const Object& write : left) by_operator |= PyTuple_GET_ITEM(write.get(), 1) != Py_None;
    if (!by_operator) {
      checked(PyDict_DelItem(writes_.get(), argument.storage.get()));
      return;
    }
    Object list = checked(PyList_New(0));
    for (const Object& write : left) checked(PyList_Append(list.get(), write.get()));
    Object own = checked(PyTuple_Pack(2, argument.meta.get(), Py_None));
    checked(PyList_Append(list.get(), own.get()));
    checked(PyDict_SetItem(writes_.get(), argument.storage.get(), list.get()));
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

  Object writes_;   // dict: number of a storage -> [(TensorMeta, name of an operator or None)]
  Object between_;  // (TensorMeta, TensorMeta) -> Relation
  std::map<std::pair<PyObject*, PyObject*>, char> relations_;
  std::vector<Object> metas_;
};
