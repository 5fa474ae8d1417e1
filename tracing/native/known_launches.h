// Records launches that were recorded before with equal arguments at equal addresses. What the Python form does for
// them is in LaunchRecorder._before and _after; both append to the same list of lines.
#pragma once

#include <Python.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "call_sites.h"
#include "counters.h"
#include "digests.h"
#include "json_line.h"
#include "last_writers.h"
#include "launch_key.h"
#include "timers_type.h"
#include "python_objects.h"
#include "recording_lock.h"

struct KnownLaunch {
  Object kept;       // its autotuner and the generated code: their addresses stay their own
  Object slots;      // a DigestSlots
  Object stream_number;
  long segment = 0;  // of the run, that has the records which the line refers to
  std::string line;  // its middle: "signature":3,"stream":0,"storages":[1,2]
  PyObject* code = nullptr;  // the generated function, held by `kept`
  int line_number = 0;       // in its file
  void* stream = nullptr;
  int following = 0;         // that of the launch that follows, with nothing on the device in between; 0: none
  std::vector<Argument> reads, writes;
  LaunchDigests digests;
  Object watched;            // its template, if what it writes is searched for NaN or inf
  bool timed = false;        // its time is measured
  bool selected = true;      // its kernel is
  bool complete = true;      // it can be recorded
  int device = 0;
};

// A known launch that is being made.
struct RunningLaunch {
  long index = -1;  // its number; -1: it is not recorded
  long thread = 0;
  LaunchDigests::Slots slots;
  long timer = 0;  // of its time, if it is measured
};

// The digests after a launch that are taken together with those before the launch that follows.
struct DeferredDigests {
  std::shared_ptr<KnownLaunch> launch;
  LaunchDigests::Slots slots;
  long index = -1;
};

// What launches of one recording are recorded into.
class KnownLaunches {
 public:
  // recorder: a tracing.record.launches.known_launches.KnownLaunches
  explicit KnownLaunches(PyObject* recorder)
      : recorder_(Object::borrowed(recorder)),
        thread_(attribute<"thread">(recorder_)),
        lock_(attribute<"lock">(recorder_)),
        held_(attribute<"held">(recorder_)),
        waiting_(attribute<"waiting">(recorder_)),
        capturing_(attribute<"capturing">(recorder_)),
        generated_(attribute<"generated">(recorder_)),
        times_(attribute<"times">(recorder_)),
        failsafe_(attribute<"failsafe">(recorder_)),
        flight_(attribute<"flight">(recorder_)),
        watched_(attribute<"watched">(recorder_)),
        segments_(attribute<"segments">(recorder_)),
        open_(attribute<"open_graphs">(recorder_)),
        start_(as_long(attribute<"start">(recorder_))),
        stop_(as_long(attribute<"stop">(recorder_))),
        counters_(attribute<"recording">(recorder_)),
        sites_(attribute<"sites">(recorder_).get()),
        writers_(attribute<"writers">(recorder_)) {
    static long recordings = 0;
    serial_ = ++recordings;
  }

  // In a step that is not written, counts a launch that is about to be made, and returns true.
  bool passes_over() {
    if (flight_.get() == Py_None || attribute<"paused">(flight_).get() == Py_False) return false;
    if (!deferred_.empty() || PyList_GET_SIZE(open_.get()) > 0) return false;  // the Python form knows what to do
    RecordingLock lock(lock_, false);
    if (!lock.held() || attribute<"over">(failsafe_).get() != Py_False) return false;
    counters_.launches()++;
    return true;
  }

  // The key of a launch by generated code. Throws NotKnown.
  Key key(PyObject* const* arguments, Py_ssize_t count, PyObject* stream) {
    PyFrameObject* frame = PyEval_GetFrame();
    if (frame == nullptr) throw NotKnown();
    Object code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    if (!is_generated(code)) throw NotKnown();
    Key key{word(code.get()), CallSites::instruction(frame), word(arguments[0])};
    LaunchArguments added(key);
    added.add(stream);
    for (Py_ssize_t i = 1; i < count; i++) added.add(arguments[i]);
    return key;
  }

  std::shared_ptr<KnownLaunch> known(const Key& key) {
    const auto found = launches_.find(view(key));
    if (found == launches_.end()) throw NotKnown();
    return found->second;
  }

  // Records a launch that is about to be made. Throws NotKnown, PythonError.
  void before(KnownLaunch& launch, RunningLaunch& running) {
    long thread = thread_number();
    if (attribute<"over">(failsafe_).get() != Py_False) throw NotKnown();
    if (is_captured(launch)) throw NotKnown();
    RecordingLock lock(lock_, false);
    if (!lock.held()) throw NotKnown();
    if (PyList_GET_SIZE(held_.get()) >= kLines) call<"flush">(recorder_);
    const bool selected = is_selected(launch);
    if (selected && !launch.complete) throw NotKnown();
    refresh(launch);
    auto operators = writers_.of(launch.reads, launch.writes);
    const long index = counters_.launches()++;
    if (!selected) return end_deferred(launch, thread);
    counters_.recorded()++;
    const Object line = text(launch, index, operators, sites_.current(), thread);
    checked(PyList_Append(held_.get(), line.get()));
    if (launch.digests) {
      Object number = checked(PyLong_FromLong(index));
      call<"append">(waiting_, number.get());
      if (launch.watched) checked(PyDict_SetItem(watched_.get(), number.get(), launch.watched.get()));
      running.slots = digests_before(launch, thread);
    }
    if (launch.timed) running.timer = started(launch, index);
    running.index = index;
    running.thread = thread;
  }

  void after(const std::shared_ptr<KnownLaunch>& launch, const RunningLaunch& running) {
    if (launch->timed) timers_->stop(running.timer);
    if (!launch->digests) return;
    if (launch->following != 0) {
      deferred_[running.thread] = {launch, running.slots, running.index};
      return;
    }
    RecordingLock lock(lock_);
    launch->digests.after(running.slots, running.index);
  }

  // The Python form is about to record a launch. If it is the one that follows, the digests that were deferred are
  // taken now; if not, an exception came between, and the earlier launch has none, as one that failed.
  void end_deferred() {
    if (number_of_thread().recording != serial_) return;
    const auto earlier = deferred_.extract(number_of_thread().number);
    if (!earlier || attribute<"over">(failsafe_).get() != Py_False) return;
    const auto& [launch, slots, index] = earlier.mapped();
    PyFrameObject* frame = PyEval_GetFrame();
    const Object code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const bool follows = code.get() == launch->code && PyFrame_GetLineNumber(frame) == launch->following;
    RecordingLock lock(lock_);
    follows ? launch->digests.after(slots, index) : lost();
  }

  // The Python form is about to record a launch.
  void begin_learning() { set<"slots">(thread_, Py_None); }

  // Keeps what the Python form has recorded, if it is equal in all launches with this key.
  void learn(const Key& key, PyObject* autotuner, PyObject* stream) {
    Object slots = attribute<"slots">(thread_);
    if (slots.get() == Py_None || !PyLong_CheckExact(stream)) return;
    Object facts = call<"facts">(recorder_, slots.get(), stream);
    if (facts.get() == Py_None) return;
    auto launch = std::make_shared<KnownLaunch>();
    const char* line;
    PyObject *reads, *writes, *digests;
    int selected, complete;
    if (!PyArg_ParseTuple(facts.get(), "yO!O!Oipp", &line, &PyList_Type, &reads, &PyList_Type, &writes, &digests,
                          &launch->device, &selected, &complete))
      throw PythonError();
    launch->selected = selected != 0;
    launch->complete = complete != 0;
    Object code(reinterpret_cast<PyObject*>(PyFrame_GetCode(PyEval_GetFrame())));
    launch->kept = checked(PyTuple_Pack(2, autotuner, code.get()));
    launch->slots = slots;
    launch->stream_number = Object::borrowed(stream);
    launch->segment = as_long(attribute<"segment">(slots));
    refer(*launch, line, reads, writes);
    launch->code = code.get();
    launch->stream = as_handle(Object::borrowed(stream));
    launch->line_number = PyFrame_GetLineNumber(PyEval_GetFrame());
    if (digests != Py_None) {
      launch->digests = LaunchDigests(recorder_, digests);
      launch->following = static_cast<int>(as_long(call<"following">(recorder_, slots.get())));
      if (watched_.get() != Py_None) launch->watched = attribute<"template">(slots);
    }
    launch->timed = times_.get() != Py_None;
    if (launch->timed) timers_ = &timers_of(attribute<"timers">(times_));
    number_of_thread().recording = serial_;
    number_of_thread().number = as_long(attribute<"number">(thread_));
    if (launches_.size() >= kKnown) launches_.clear();
    launches_[words(key)] = std::move(launch);
  }

  // An exception is set. If it is the recorder's own, the recording ends, and the program continues unless the
  // recording is strict. False: it is to be raised.
  bool survived() {
    if (!is_recorders()) return false;
    const Object error = raised();
    return static_cast<bool>(Object(PyObject_CallMethod(failsafe_.get(), "end", "O", error.get())));
  }

 private:
  static constexpr Py_ssize_t kLines = 256;     // held back at most
  static constexpr size_t kKnown = 1 << 16;     // launches that are remembered

  struct ThreadNumber {
    long recording = 0;
    long number = 0;
  };

  static ThreadNumber& number_of_thread() {
    static thread_local ThreadNumber number;
    return number;
  }

  // Of a run in segments, each segment has the records that its lines refer to.
  void refresh(KnownLaunch& launch) {
    if (segments_.get() == Py_None) return;
    const long segment = as_long(attribute<"number">(segments_));
    if (launch.segment == segment) return;
    const Object facts = call<"refreshed">(recorder_, launch.slots.get(), launch.stream_number.get());
    const char* line;
    PyObject *reads, *writes;
    if (!PyArg_ParseTuple(facts.get(), "yO!O!", &line, &PyList_Type, &reads, &PyList_Type, &writes))
      throw PythonError();
    refer(launch, line, reads, writes);
    launch.segment = segment;
    if (segment != segment_) forget(as_long(attribute<"oldest">(segments_)));
    segment_ = segment;
  }

  static void refer(KnownLaunch& launch, const char* line, PyObject* reads, PyObject* writes) {
    launch.line = line;
    launch.reads = tensors(reads);
    launch.writes = tensors(writes);
  }

  // Forgets launches that no segment on disk has.
  void forget(long oldest) {
    std::erase_if(launches_, [oldest](const auto& one) { return one.second->segment < oldest; });
  }

  bool is_captured(const KnownLaunch& launch) const {
    if (const auto captured = is_capturing(launch.stream)) return *captured;
    return checked(PyObject_CallNoArgs(capturing_.get())).get() != Py_False;
  }

  void lost() { call<"lost">(recorder_); }

  long started(const KnownLaunch& launch, long index) {
    if (timers_->due()) call<"flush">(times_);
    return timers_->start(index, launch.device, launch.stream);
  }

  bool is_selected(const KnownLaunch& launch) const {
    return launch.selected && start_ <= counters_.launches() && counters_.launches() < stop_;
  }

  // A launch that is not recorded takes no digests together with those of the one before it.
  void end_deferred(const KnownLaunch& launch, long thread) {
    const auto earlier = deferred_.extract(thread);
    if (!earlier) return;
    const auto& [previous, slots, index] = earlier.mapped();
    is_after(launch, *previous) ? previous->digests.after(slots, index) : lost();
  }

  // True if a launch directly follows another one.
  static bool is_after(const KnownLaunch& launch, const KnownLaunch& previous) {
    return launch.code == previous.code && launch.line_number == previous.following;
  }

  LaunchDigests::Slots digests_before(KnownLaunch& launch, long thread) {
    const auto earlier = deferred_.extract(thread);
    if (!earlier) return launch.digests.before();
    const auto& [previous, slots, index] = earlier.mapped();
    const bool follows = is_after(launch, *previous);
    if (follows && launch.digests.has_stream_of(previous->digests))
      return launch.digests.before(previous->digests, slots, index);
    follows ? previous->digests.after(slots, index) : lost();
    return launch.digests.before();
  }

  long thread_number() const {
    if (number_of_thread().recording != serial_) throw NotKnown();  // the Python form has not seen this thread
    return number_of_thread().number;
  }

  bool is_generated(const Object& code) {
    auto known = is_generated_.find(code.get());
    if (known != is_generated_.end()) return known->second;
    Object name = attribute<"co_name">(code);
    int contained = PySequence_Contains(generated_.get(), name.get());
    checked(contained);
    codes_.push_back(code);
    return is_generated_[code.get()] = contained == 1;
  }

  static std::vector<Argument> tensors(PyObject* list) {
    std::vector<Argument> found;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
      long position;
      PyObject *storage, *meta;
      if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "lOO", &position, &storage, &meta)) throw PythonError();
      found.push_back({position, Object::borrowed(storage), Object::borrowed(meta)});
    }
    return found;
  }

  // A LaunchLine as JSON.
  Object text(const KnownLaunch& launch, long index, const LastWriters::Operators& operators, long site, long thread) {
    JsonLine line;
    line << "{\"index\":" << index << "," << launch.line;
    std::string_view separator = ",\"writers\":{";
    for (const auto& [position, name] : operators) {
      line << separator << "\"" << position << "\":" << quoted(name);
      separator = ",";
    }
    if (!operators.empty()) line << "}";
    if (site != -1) line << ",\"site\":" << site;
    if (thread != 0) line << ",\"thread\":" << thread;
    line << "}";
    return line.bytes();
  }

  const std::string& quoted(const Object& name) {
    auto known = quoted_.find(name.get());
    if (known != quoted_.end()) return known->second;
    Object json = call<"json">(recorder_, name.get());
    const char* bytes = PyBytes_AsString(json.get());
    if (bytes == nullptr) throw PythonError();
    codes_.push_back(name);
    return quoted_[name.get()] = bytes;
  }

  Object recorder_, thread_, lock_, held_, waiting_, capturing_, generated_, times_, failsafe_;
  Object flight_;    // None: every step is written
  Object watched_;   // dict: number of a launch -> its template; None: nothing is searched for NaN or inf
  Object segments_;  // None: the run has none
  Object open_;      // list of CUDA graphs that are captured now
  long segment_ = 0;
  long start_, stop_;  // numbers of launches that are recorded
  LaunchTimers* timers_ = nullptr;  // of `times_`; null: no known launch is measured
  Counters counters_;
  CallSites sites_;
  LastWriters writers_;
  long serial_;
  std::unordered_map<Words, std::shared_ptr<KnownLaunch>, WordsHash, WordsEqual> launches_;
  std::unordered_map<long, DeferredDigests> deferred_;  // by thread
  std::unordered_map<PyObject*, bool> is_generated_;
  std::unordered_map<PyObject*, std::string> quoted_;
  std::vector<Object> codes_;  // alive: maps above have their addresses
};
