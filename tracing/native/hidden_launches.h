// How deep the current thread is in blocks whose launches and operators are hidden: `hidden` of a threading.local.
#pragma once

#include <Python.h>

#include "python_objects.h"

// What a threading.local holds of the current thread; Python keeps it as long as the thread lives.
inline PyObject* state_of(PyObject* thread) {
  thread_local PyObject *local = nullptr, *known = nullptr;
  if (local != thread) {
    known = attribute<"__dict__">(Object::borrowed(thread)).get();
    local = thread;
  }
  return known;
}

inline Object hidden_of(PyObject* thread) {
  if (PyObject* count = PyDict_GetItemWithError(state_of(thread), interned<"hidden">())) return Object::borrowed(count);
  if (PyErr_Occurred()) throw PythonError();
  return attribute<"hidden">(Object::borrowed(thread));  // that of its class
}
