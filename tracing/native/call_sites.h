// Finds the line of the user's Python code that made a launch or called an operator: the compiled form of
// tracing/launch/call_sites.py, which is called for each code object and each line that is new.
#pragma once

#include <Python.h>
#include <c10/macros/Export.h>
#include <frameobject.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "python_objects.h"

namespace torch::autograd {
TORCH_API int get_current_graph_task_id();  // as in torch/csrc/autograd/graph_task.h, which is slow to compile
}

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
    return outside();
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

  struct Kind {
    PyObject* code = nullptr;
    char letter = 0;
  };

  char kind(const Object& code) {
    auto& [known, other] = kinds_[reinterpret_cast<size_t>(code.get()) / alignof(std::max_align_t) % kinds_.size()];
    if (known.code == code.get()) return known.letter;
    std::swap(known, other);
    if (known.code == code.get()) return known.letter;
    // Python's form keeps the code object alive, so that its address stays its own
    Object text = call<"kind">(sites_, code.get());
    const char* name = PyUnicode_AsUTF8(text.get());
    if (name == nullptr) throw PythonError();
    known = {code.get(), name[0]};
    return known.letter;
  }

  // On a thread of autograd: the caller of the backward pass.
  long outside() {
    const int pass = torch::autograd::get_current_graph_task_id();
    if (pass != pass_) {
      caller_ = as_long(call<"outside">(sites_));
      pass_ = pass;
    }
    return caller_;
  }

  long numbered(const Object& frame, const Object& code) {
    long at = instruction(reinterpret_cast<PyFrameObject*>(frame.get()));
    auto known = numbers_.find({code.get(), at});
    if (known != numbers_.end()) return known->second;
    return numbers_[{code.get(), at}] = as_long(call<"of">(sites_, frame.get()));
  }

  Object sites_;
  std::array<std::array<Kind, 2>, 1024> kinds_{};  // "skipped", "user", "end": first letters; of codes seen lately
  std::unordered_map<Instruction, long, Hash> numbers_;
  int pass_ = -2;     // the backward pass that was seen last; -1: none
  long caller_ = -1;  // the number of its caller
};
