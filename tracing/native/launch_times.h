// Measures how long a launch takes that was recorded before, and reads the events of all: the compiled form of
// LaunchTimes.start_on, stop and _known in tracing/record/launches/timing.py, with the same events and timers.
#pragma once

#include <Python.h>
#include <time.h>

#include <cmath>

#include "driver.h"
#include "json_line.h"
#include "python_objects.h"

// The CUDA event of a torch.cuda.Event; null: it was never recorded.
inline void* handle_of(const Object& event) { return as_handle(attribute<"cuda_event">(event)); }

// Removes timers from the left as long as their times are known; returns their lines. Throws PythonError.
// timers: a collections.deque of Timer
inline Object known_times(const Object& timers) {
  Object lines = checked(PyList_New(0));
  while (PyObject_Size(timers.get()) > 0) {
    const Object timer = checked(PySequence_GetItem(timers.get(), 0));
    const Object wall = attribute<"wall">(timer), clock = attribute<"clock">(timer);
    if (wall.get() == Py_None) break;
    JsonLine line;
    line << "{\"launch\":" << as_long(attribute<"launch">(timer)) << ",\"wall_us\":";
    line.thousandth(as_long(wall));
    if (clock.get() != Py_None) {
      const Object first = attribute<"first">(timer), last = attribute<"last">(timer);
      const std::optional<float> milliseconds = elapsed(handle_of(first), handle_of(last));
      if (!milliseconds) break;
      (line << ",\"device_us\":").thousandth(std::lround(*milliseconds * 1e6));
      const Object spare = attribute<"spare">(clock);
      checked(PyList_Append(spare.get(), first.get()));
      checked(PyList_Append(spare.get(), last.get()));
    }
    call<"popleft">(timers);
    line << "}";
    checked(PyList_Append(lines.get(), line.bytes().get()));
  }
  return lines;
}

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
        stream_(as_handle(attribute<"handle">(clock))) {}

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

  // An event that nothing waits for.
  Object event() const {
    const Py_ssize_t count = PyList_GET_SIZE(spare_.get());
    if (count == 0) return call<"event">(clock_);
    Object one = Object::borrowed(PyList_GET_ITEM(spare_.get(), count - 1));
    checked(PyList_SetSlice(spare_.get(), count - 1, count, nullptr));
    return one;
  }

  void record(const Object& event) const {
    void* const handle = handle_of(event);
    if (handle == nullptr) {  // torch creates it when it records it for the first time
      call<"record">(event, attribute<"stream">(clock_).get());
    } else {
      record_event(handle, stream_);
    }
  }

  Object times_, clock_, spare_, timers_, timer_;
  void* stream_ = nullptr;
};
