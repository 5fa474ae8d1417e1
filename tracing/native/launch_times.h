// Measures how long a launch takes that was recorded before: the compiled form of LaunchTimes.start_on and stop in
// tracing/record/launches/timing.py, with the same events and timers.
#pragma once

#include <Python.h>
#include <time.h>

#include "driver.h"
#include "python_objects.h"

// Measures the launches on one stream. All methods throw PythonError.
class LaunchClock {
 public:
  // A launch between `start` and `stop`.
  struct Running {
    Object timer, last;
    long long began = 0;
  };

  LaunchClock() = default;
  // times, clock: a LaunchTimes, and its Clock for the stream
  LaunchClock(const Object& times, const Object& clock)
      : times_(times),
        clock_(clock),
        spare_(attribute<"spare">(clock)),
        timers_(attribute<"timers">(times)),
        timer_(attribute<"timer">(times)),
        stream_(reinterpret_cast<void*>(as_handle(attribute<"handle">(clock)))) {}

  explicit operator bool() const { return static_cast<bool>(times_); }

  Running start(long launch) const {
    if (PyObject_Size(timers_.get()) >= as_long(attribute<"due">(times_))) call<"flush">(times_);
    const Object number = checked(PyLong_FromLong(launch)), first = event();
    Running running{{}, event()};
    PyObject* facts[] = {number.get(), clock_.get(), first.get(), running.last.get()};
    running.timer = checked(PyObject_Vectorcall(timer_.get(), facts, 4, nullptr));
    call<"append">(timers_, running.timer.get());
    record(first);
    running.began = now();
    return running;
  }

  void stop(const Running& running) const {
    const long long ended = now();
    record(running.last);
    set<"wall">(running.timer, checked(PyLong_FromLongLong(ended - running.began)).get());
  }

 private:
  // Nanoseconds, as time.perf_counter_ns().
  static long long now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
  }

  static unsigned long long as_handle(const Object& number) {
    const unsigned long long value = PyLong_AsUnsignedLongLong(number.get());
    if (PyErr_Occurred()) throw PythonError();
    return value;
  }

  // An event that nothing waits for.
  Object event() const {
    const Py_ssize_t count = PyList_GET_SIZE(spare_.get());
    if (count == 0) return call<"event">(clock_);
    Object one = Object::borrowed(PyList_GET_ITEM(spare_.get(), count - 1));
    checked(PyList_SetSlice(spare_.get(), count - 1, count, nullptr));
    return one;
  }

  void record(const Object& event) const {
    const unsigned long long handle = as_handle(attribute<"cuda_event">(event));
    if (handle == 0) {  // torch creates it when it records it for the first time
      call<"record">(event, attribute<"stream">(clock_).get());
    } else {
      record_event(reinterpret_cast<void*>(handle), stream_);
    }
  }

  Object times_, clock_, spare_, timers_, timer_;
  void* stream_ = nullptr;
};
