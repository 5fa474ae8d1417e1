// Launches the digest kernels of a launch or an operator that was recorded before: the compiled form of
// StreamDigests.reserve, add and ended in tracing/digest/gpu.py, on the same batches.
#pragma once

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "driver.h"
#include "python_objects.h"

// One launch of a digest kernel, except for the address of its slots.
struct DigestCall {
  void* function;
  unsigned programs, threads, shared;
  std::vector<uint64_t> arguments;  // integers and addresses, in the order of the kernel's arguments
  uint64_t slots;                   // how many it fills; as many tensors are its first arguments

  // call: (function, programs, threads, shared, arguments, slots)
  explicit DigestCall(PyObject* call) {
    unsigned long long handle, filled;
    PyObject* values;
    if (!PyArg_ParseTuple(call, "KIIIO!K", &handle, &programs, &threads, &shared, &PyTuple_Type, &values, &filled))
      throw PythonError();
    function = reinterpret_cast<void*>(handle);
    slots = filled;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
      arguments.push_back(PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(values, i)));
      if (PyErr_Occurred()) throw PythonError();
    }
  }

  // tensors: their addresses; null: those of `arguments`
  void launch(void* stream, uint64_t address, const uint64_t* tensors) const {
    if (programs == 0) return;
    // after its own arguments a kernel has those that Triton adds, as scratch memory: null. The driver reads
    // as many as the kernel has.
    constexpr size_t kAdded = 4, kMost = 128;
    static uint64_t null = 0;
    void* parameters[kMost];
    const size_t own = arguments.size();
    if (own + 1 + kAdded > kMost) throw std::runtime_error("a digest kernel with too many arguments");
    for (size_t i = 0; i < own; i++) parameters[i] = const_cast<uint64_t*>(&arguments[i]);
    for (size_t i = 0; tensors != nullptr && i < slots; i++) parameters[i] = const_cast<uint64_t*>(&tensors[i]);
    parameters[own] = &address;
    std::fill_n(&parameters[own + 1], kAdded, &null);
    launch_kernel(function, programs, threads, shared, stream, parameters);
  }
};

// The digests before and after one launch, on one stream. What an operator reads, or writes, counts as a launch.
class LaunchDigests {
 public:
  struct Slots {
    Object batch;
    long first = 0;
    uint64_t address = 0;
  };

  LaunchDigests() = default;
  // recorder: has next_batch and leave, which a StreamDigests needs
  // plan: of StreamDigests.plan: (StreamDigests, handle of its stream, slots of a batch, bytes of a slot,
  // calls before, calls after, sides)
  LaunchDigests(const Object& recorder, PyObject* plan) : recorder_(recorder) {
    PyObject *digests, *before, *after, *sides;
    unsigned long long stream;
    if (!PyArg_ParseTuple(plan, "OKllO!O!O", &digests, &stream, &slots_, &bytes_, &PyList_Type, &before,
                          &PyList_Type, &after, &sides))
      throw PythonError();
    digests_ = Object::borrowed(digests);
    sides_ = Object::borrowed(sides);
    stream_ = reinterpret_cast<void*>(stream);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(before); i++) before_.emplace_back(PyList_GET_ITEM(before, i));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(after); i++) after_.emplace_back(PyList_GET_ITEM(after, i));
  }

  explicit operator bool() const { return static_cast<bool>(digests_); }

  // tensors: the addresses of those digested before; null: the same in each launch
  Slots before(const uint64_t* tensors = nullptr) const {
    Slots slots = reserved(count(before_) + count(after_));
    launch(before_, slots.address, tensors);
    return slots;
  }

  void after(const Slots& slots, long index) const {
    launch(after_, slots.address + count(before_) * bytes_, nullptr);
    const Object rows = attribute<"rows">(slots.batch);
    checked(PyList_Append(attribute<"launches">(rows).get(), checked(PyLong_FromLong(index)).get()));
    checked(PyList_Append(attribute<"firsts">(rows).get(), checked(PyLong_FromLong(slots.first)).get()));
    checked(PyList_Append(attribute<"sides">(rows).get(), sides_.get()));
    if (add<"running">(slots.batch, -1) == 0 && attribute<"batch">(digests_).get() != slots.batch.get())
      call<"leave">(recorder_, digests_.get(), slots.batch.get());
  }

 private:
  static uint64_t count(const std::vector<DigestCall>& calls) {
    uint64_t slots = 0;
    for (const DigestCall& call : calls) slots += call.slots;
    return slots;
  }

  Slots reserved(uint64_t wanted) const {
    Object batch = attribute<"batch">(digests_);
    if (as_long(attribute<"count">(batch)) + static_cast<long>(wanted) > slots_) {
      call<"next_batch">(recorder_, digests_.get());
      batch = attribute<"batch">(digests_);
    }
    long first = add<"count">(batch, static_cast<long>(wanted)) - static_cast<long>(wanted);
    add<"running">(batch, 1);
    uint64_t address = PyLong_AsUnsignedLongLong(attribute<"address">(batch).get());
    return {batch, first, address + first * bytes_};
  }

  void launch(const std::vector<DigestCall>& calls, uint64_t address, const uint64_t* tensors) const {
    for (const DigestCall& call : calls) {
      call.launch(stream_, address, tensors);
      address += call.slots * bytes_;
      if (tensors != nullptr) tensors += call.slots;
    }
  }

  Object recorder_, digests_, sides_;
  void* stream_ = nullptr;
  long slots_ = 0, bytes_ = 0;
  std::vector<DigestCall> before_, after_;
};
