// Finds the line of the user's Python code that made a launch or called an operator: the compiled form of
// tracing/launch/call_sites.py, which is called for each code object and each line that is new.
#pragma once

#include <Python.h>
#include <frameobject.h>

#include <cstdint>
#include <unordered_map>

#include "python_objects.h"

class CallSites {
 public:
  // sites: a tracing.launch.call_sites.CallSites
  explicit CallSites(PyObject* sites) : sites_(Object::borrowed(sites)) {}

  // The instruction that a frame executes, as frame.f_lasti.
  static long instruction(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    return as_long(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_lasti")));
#endif
  }

  // The number of the first line of the user's code, from the current frame outwards. Throws PythonError.
  // Call it with the GIL held.
  long current() {
    Object frame = Object::borrowed(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
    while (frame) {
      auto* here = reinterpret_cast<PyFrameObject*>(frame.get());
      Object code(reinterpret_cast<PyObject*>(PyFrame_GetCode(here)));
      switch (kind(code)) {
        case 'u': return numbered(frame, code);
        case 'e': return -1;
      }
      frame = Object(reinterpret_cast<PyObject*>(PyFrame_GetBack(here)));
    }
    return as_long(call<"outside">(sites_));  // on a thread of autograd: the caller of the backward pass
  }

 private:
  struct Instruction {
    PyObject* code;
    long at;
    bool operator==(const Instruction& other) const { return code == other.code && at == other.at; }
  };
  struct Hash {
    size_t operator()(const Instruction& one) const {
      return reinterpret_cast<size_t>(one.code) * 31 + static_cast<size_t>(one.at);
    }
  };

  char kind(const Object& code) {
    auto known = kinds_.find(code.get());
    if (known != kinds_.end()) return known->second;
    // Python's form keeps the code object alive, so that its address stays its own
    Object text = call<"kind">(sites_, code.get());
    const char* name = PyUnicode_AsUTF8(text.get());
    if (name == nullptr) throw PythonError();
    return kinds_[code.get()] = name[0];
  }

  long numbered(const Object& frame, const Object& code) {
    long at = instruction(reinterpret_cast<PyFrameObject*>(frame.get()));
    auto known = numbers_.find({code.get(), at});
    if (known != numbers_.end()) return known->second;
    return numbers_[{code.get(), at}] = as_long(call<"of">(sites_, frame.get()));
  }

  Object sites_;
  std::unordered_map<PyObject*, char> kinds_;  // "skipped", "user", "end": their first letter
  std::unordered_map<Instruction, long, Hash> numbers_;
};
