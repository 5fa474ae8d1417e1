// The counters of a recording, in the memory of an array that Python counts in, too.
#pragma once

#include <Python.h>

#include "python_objects.h"

class Counters {
 public:
  // recording: a tracing.record.recording.Recording
  explicit Counters(const Object& recording) {
    checked(PyObject_GetBuffer(attribute<"counters">(recording).get(), &memory_, PyBUF_WRITABLE));
  }
  Counters(const Counters&) = delete;
  ~Counters() { PyBuffer_Release(&memory_); }

  long long& launches() const { return at(0); }
  long long& recorded() const { return at(1); }
  long long& operators() const { return at(2); }

 private:
  long long& at(size_t i) const { return static_cast<long long*>(memory_.buf)[i]; }

  Py_buffer memory_;
};
