// Launches the digest kernels of a launch or an operator that was recorded before: the compiled form of
// StreamDigests.reserve, add and ended in tracing/digest/gpu.py, on the same batches.
#pragma once

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "driver.h"
#include "python_objects.h"

// One launch of a digest kernel, except for the addresses of its slots.
struct DigestCall {
  static constexpr size_t kWidth = 8;  // tensors at most: their addresses come first, then those of their slots

  void* function;
  unsigned programs, threads, shared;
  std::vector<uint64_t> arguments;  // integers and addresses, in the order of the kernel's arguments
  std::vector<uint64_t> positions;  // of its tensors, among all that are digested together

  // call: (function, programs, threads, shared, arguments, positions)
  explicit DigestCall(PyObject* call) {
    unsigned long long handle;
    PyObject *values, *list;
    if (!PyArg_ParseTuple(call, "KIIIO!O!", &handle, &programs, &threads, &shared, &PyTuple_Type, &values,
                          &PyList_Type, &list))
      throw PythonError();
    function = reinterpret_cast<void*>(handle);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) arguments.push_back(number(PyTuple_GET_ITEM(values, i)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) positions.push_back(number(PyList_GET_ITEM(list, i)));
    if (positions.size() > kWidth || arguments.size() < 2 * kWidth || arguments.size() + kAdded > kMost)
      throw std::runtime_error("a digest kernel with other arguments");
  }

  // slot: the address of the slot of the tensor at a position
  // tensors: the addresses of those at all positions; null: those of `arguments`
  template <typename Slot>
  void launch(void* stream, Slot slot, const uint64_t* tensors = nullptr) const {
    if (programs == 0) return;
    uint64_t slots[kWidth], null = 0;
    void* parameters[kMost];
    for (size_t i = 0; i < arguments.size(); i++) parameters[i] = const_cast<uint64_t*>(&arguments[i]);
    for (size_t i = 0; i < positions.size(); i++) {
      if (tensors != nullptr) parameters[i] = const_cast<uint64_t*>(&tensors[positions[i]]);
      slots[i] = slot(positions[i]);
      parameters[kWidth + i] = &slots[i];
    }
    std::fill_n(&parameters[arguments.size()], kAdded, &null);
    launch_kernel(function, programs, threads, shared, stream, parameters);
  }

 private:
  // After its own arguments a kernel has those that Triton adds, as scratch memory: null. The driver reads as many as
  // the kernel has.
  static constexpr size_t kAdded = 4, kMost = 160;

  static uint64_t number(PyObject* object) {
    const uint64_t value = PyLong_AsUnsignedLongLongMask(object);
    if (PyErr_Occurred()) throw PythonError();
    return value;
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
  // calls before, calls after, sides, the calls as Python has them)
  LaunchDigests(const Object& recorder, PyObject* plan) : recorder_(recorder) {
    PyObject *digests, *before, *after, *sides, *python_before, *python_after;
    unsigned long long stream;
    if (!PyArg_ParseTuple(plan, "OKllO!O!OOO", &digests, &stream, &slots_, &bytes_, &PyList_Type, &before,
                          &PyList_Type, &after, &sides, &python_before, &python_after))
      throw PythonError();
    static long plans = 0;
    serial_ = ++plans;
    digests_ = Object::borrowed(digests);
    sides_ = Object::borrowed(sides);
    python_before_ = Object::borrowed(python_before);
    python_after_ = Object::borrowed(python_after);
    stream_ = reinterpret_cast<void*>(stream);
    before_ = calls_of(before);
    after_ = calls_of(after);
  }

  explicit operator bool() const { return static_cast<bool>(digests_); }

  // tensors: the addresses of those digested before; null: the same in each launch
  Slots before(const uint64_t* tensors = nullptr) const {
    const Slots slots = reserved(count(before_) + count(after_));
    launch(before_, slots.address, tensors);
    return slots;
  }

  void after(const Slots& slots, long index) const {
    launch(after_, after_address(slots));
    ended(slots, index);
  }

  // The digests after the previous launch, and those before this one: nothing was executed between the two.
  Slots before(const LaunchDigests& previous, const Slots& slots_of_previous, long index_of_previous) {
    const Slots slots = reserved(count(before_) + count(after_));
    auto known = merged_.find(previous.serial_);
    if (known == merged_.end()) {
      if (merged_.size() >= kMerged) merged_.clear();
      const Object calls =
          call<"merged">(recorder_, digests_.get(), previous.python_after_.get(), python_before_.get());
      known = merged_.emplace(previous.serial_, calls_of(calls.get())).first;
    }
    const uint64_t first = count(previous.after_), address = previous.after_address(slots_of_previous);
    const auto slot = [&](uint64_t position) {
      return position < first ? address + position * bytes_ : slots.address + (position - first) * bytes_;
    };
    for (const DigestCall& call : known->second) call.launch(stream_, slot);
    previous.ended(slots_of_previous, index_of_previous);
    return slots;
  }

  bool has_stream_of(const LaunchDigests& other) const { return digests_.get() == other.digests_.get(); }

 private:
  void ended(const Slots& slots, long index) const {
    const Object rows = attribute<"rows">(slots.batch);
    checked(PyList_Append(attribute<"launches">(rows).get(), checked(PyLong_FromLong(index)).get()));
    checked(PyList_Append(attribute<"firsts">(rows).get(), checked(PyLong_FromLong(slots.first)).get()));
    checked(PyList_Append(attribute<"sides">(rows).get(), sides_.get()));
    if (add<"running">(slots.batch, -1) == 0 && attribute<"batch">(digests_).get() != slots.batch.get())
      call<"leave">(recorder_, digests_.get(), slots.batch.get());
  }

  static constexpr size_t kMerged = 64;  // earlier launches that are remembered

  static std::vector<DigestCall> calls_of(PyObject* list) {
    std::vector<DigestCall> calls;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) calls.emplace_back(PyList_GET_ITEM(list, i));
    return calls;
  }

  static uint64_t count(const std::vector<DigestCall>& calls) {
    uint64_t tensors = 0;
    for (const DigestCall& call : calls) tensors += call.positions.size();
    return tensors;
  }

  uint64_t after_address(const Slots& slots) const { return slots.address + count(before_) * bytes_; }

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

  void launch(const std::vector<DigestCall>& calls, uint64_t address, const uint64_t* tensors = nullptr) const {
    const auto slot = [&](uint64_t position) { return address + position * bytes_; };
    for (const DigestCall& call : calls) call.launch(stream_, slot, tensors);
  }

  Object recorder_, digests_, sides_, python_before_, python_after_;
  void* stream_ = nullptr;
  long slots_ = 0, bytes_ = 0, serial_ = 0;
  std::vector<DigestCall> before_, after_;
  std::unordered_map<long, std::vector<DigestCall>> merged_;  // by the serial of the previous launch's digests
};
