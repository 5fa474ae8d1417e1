// Measures launches, on the host and on a GPU: the compiled form of tracing/record/launches/timers.py, whose lines are
// equal. Events are created by CUDA's driver, and reused: PyTorch's objects would cost more than recording them.
#pragma once

#include <Python.h>
#include <time.h>

#include <cmath>
#include <deque>
#include <map>
#include <vector>

#include "driver.h"
#include "json_line.h"
#include "python_objects.h"

// The events of one device.
class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;
  ~Events() {
    for (void* event : all_) destroy_event(event);
  }

  // An event that nothing waits for.
  void* take() {
    if (spare_.empty()) {
      all_.push_back(create_event());
      return all_.back();
    }
    void* event = spare_.back();
    spare_.pop_back();
    return event;
  }

  void give(void* event) { spare_.push_back(event); }

 private:
  std::vector<void*> all_, spare_;
};

// The launches whose times are not written yet, in launch order. The GIL is held, also by the destructor.
class LaunchTimers {
 public:
  static constexpr int kHost = -1;  // in place of a device: nothing is measured on one

  // A launch on a stream of the current device is made as soon as this returns. Returns a number for `stop`.
  long start(long launch, int device, void* stream) {
    Timer timer{launch, stream};
    if (device != kHost) {
      timer.events = &events_[device];
      timer.first = timer.events->take();
      timer.last = timer.events->take();
    }
    const long number = first_ + static_cast<long>(timers_.size());
    timers_.push_back(timer);
    if (timer.events != nullptr) record_event(timer.first, stream);
    if (Timer* running = numbered(number)) running->began = now();
    return number;
  }

  // The launch has returned; a GPU may still execute it.
  void stop(long number) {
    const long long ended = now();
    const Timer* timer = numbered(number);
    if (timer != nullptr && timer->events != nullptr) record_event(timer->last, timer->stream);
    if (Timer* running = numbered(number)) running->wall = ended - running->began;
  }

  // The number of a launch that was started and has not returned; -1: there is none.
  long running(long launch) const {
    for (size_t i = timers_.size(); i-- > 0;) {
      if (timers_[i].launch == launch && timers_[i].wall == kRunning) return first_ + static_cast<long>(i);
    }
    return -1;
  }

  // True if enough launches wait for being written together.
  bool due() const { return static_cast<long>(timers_.size()) >= due_; }

  // Removes launches from the left as long as their times are known; returns their lines. Throws PythonError.
  Object lines() {
    Object lines = checked(PyList_New(0));
    while (!timers_.empty()) {
      const Timer& timer = timers_.front();
      const bool failed = timer.wall == kFailed || (timer.wall == kRunning && timers_.size() > kMost);
      std::optional<float> milliseconds;
      if (!failed) {
        if (timer.wall == kRunning) break;
        if (timer.events != nullptr && !(milliseconds = elapsed(timer.first, timer.last))) break;
        checked(PyList_Append(lines.get(), line(timer, milliseconds).get()));
        reuse_events(timer);
      }
      timers_.pop_front();
      ++first_;
    }
    due_ = static_cast<long>(timers_.size()) + kLines;
    return lines;
  }

  // Waits for the device. The launches that have not returned failed: they get no line.
  void finish() {
    for (size_t i = 0; i < timers_.size(); ++i) {
      if (timers_[i].wall == kRunning) timers_[i].wall = kFailed;
      if (timers_[i].wall != kFailed && timers_[i].events != nullptr) synchronize_event(timers_[i].last);
    }
  }

 private:
  static constexpr long kLines = 256;        // launches that are written together
  static constexpr size_t kMost = 1 << 16;   // more launches after one that has not returned: it failed
  static constexpr long long kRunning = -1, kFailed = -2;

  struct Timer {
    long launch;
    void* stream;
    Events* events = nullptr;  // of its device; null: nothing is measured there
    void *first = nullptr, *last = nullptr;
    long long began = 0, wall = kRunning;  // in ns
  };

  // Nanoseconds, as time.perf_counter_ns().
  static long long now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
  }

  // Null: it was removed as one that failed.
  Timer* numbered(long number) {
    const bool waits = number >= first_ && number - first_ < static_cast<long>(timers_.size());
    return waits ? &timers_[static_cast<size_t>(number - first_)] : nullptr;
  }

  static Object line(const Timer& timer, std::optional<float> milliseconds) {
    JsonLine line;
    (line << "{\"launch\":" << timer.launch << ",\"wall_us\":").thousandth(static_cast<long>(timer.wall));
    if (milliseconds) (line << ",\"device_us\":").thousandth(std::lround(*milliseconds * 1e6));
    line << "}";
    return line.bytes();
  }

  static void reuse_events(const Timer& timer) {
    if (timer.events == nullptr) return;
    timer.events->give(timer.first);
    timer.events->give(timer.last);
  }

  std::map<int, Events> events_;  // by device
  std::deque<Timer> timers_;
  long first_ = 0;  // the number of the first of them
  long due_ = kLines;
};
