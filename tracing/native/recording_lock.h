// Holds the lock of a recording, a threading.RLock, while it exists.
#pragma once

#include "python_objects.h"

class RecordingLock {
 public:
  // wait: false to leave the lock to another thread that holds it
  explicit RecordingLock(const Object& lock, bool wait = true)
      : lock_(lock), held_(call<"acquire">(lock_, wait ? Py_True : Py_False).get() == Py_True) {}
  RecordingLock(const RecordingLock&) = delete;
  ~RecordingLock() {
    if (!held_) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Object released(PyObject_CallMethodNoArgs(lock_.get(), interned<"release">()));
    PyErr_Restore(type, value, trace);
  }

  bool held() const { return held_; }

 private:
  const Object& lock_;
  bool held_;
};
