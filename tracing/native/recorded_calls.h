// Appends the lines of operators whose signature is known: the compiled form of tracing/record/operator_calls.py.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "call_sites.h"
#include "operator_keys.h"
#include "python_objects.h"

// What is equal in all calls of an operator with equal arguments and layouts.
struct Signature {
  long number = -1;            // -1: it has no line in the current segment
  std::vector<Object> writes;  // (layout, operator) of each tensor that it writes, as LastWriters keeps them
};

// All methods are called with the GIL held, and throw PythonError.
class RecordedCalls {
 public:
  // calls: a tracing.record.operator_calls.OperatorCalls
  explicit RecordedCalls(PyObject* calls)
      : calls_(Object::borrowed(calls)),
        recording_(attribute<"recording">(calls_)),
        storages_(attribute<"storages">(recording_)),
        segments_(attribute<"segments">(attribute<"writer">(recording_))),
        writers_(attribute<"writers">(calls_)),
        writes_(attribute<"writes">(writers_)),
        held_(attribute<"held">(calls_)),
        lock_(attribute<"lock">(recording_)),
        longest_(as_long(attribute<"longest">(calls_))),
        sites_(attribute<"sites">(recording_).get()) {
    static long recordings = 0;
    serial_ = ++recordings;
  }

  bool has_segments() const { return segments_.get() != Py_None; }

  // True once after each change of the segment: records that lines refer to are written into each segment.
  bool segment_changed() {
    if (!has_segments()) return false;
    const long segment = as_long(attribute<"number">(segments_));
    if (segment == segment_) return false;
    segment_ = segment;
    blocks_.clear();
    return true;
  }

  void append(const Signature& signature, const std::vector<Block>& blocks, bool allocates) {
    Locked locked(lock_);
    std::vector<Number> storages;
    storages.reserve(blocks.size());
    for (const Block& block : blocks) storages.push_back(numbered(block));
    const long site = sites_.current(), thread = thread_number();
    const long index = add<"count">(calls_, 1) - 1, launch = as_long(attribute<"launches">(recording_));
    const std::string line = text(index, launch, signature.number, storages, site, thread);
    Object bytes = checked(PyBytes_FromStringAndSize(line.data(), static_cast<Py_ssize_t>(line.size())));
    checked(PyList_Append(held_.get(), bytes.get()));
    if (PyList_GET_SIZE(held_.get()) >= longest_) call<"flush_hidden">(calls_);
    const size_t reads = blocks.size() - signature.writes.size();
    for (size_t i = 0; i < signature.writes.size(); ++i) {
      PyObject* storage = storages[reads + i].object.get();
      allocates ? allocated(storage) : wrote(storage, signature.writes[i]);
    }
  }

 private:
  struct Number {
    long value;
    Object object;
  };

  class Locked {
   public:
    explicit Locked(const Object& lock) : lock_(lock) { call<"acquire">(lock_); }
    ~Locked() {
      PyObject *type, *value, *trace;
      PyErr_Fetch(&type, &value, &trace);
      Object released(PyObject_CallMethodNoArgs(lock_.get(), interned<"release">()));
      PyErr_Restore(type, value, trace);
    }

   private:
    const Object& lock_;
  };

  Number numbered(const Block& block) {
    auto known = blocks_.find(block);
    if (known != blocks_.end()) return known->second;
    if (blocks_.size() >= kBlocks) blocks_.clear();
    Object address = checked(PyLong_FromVoidPtr(const_cast<void*>(block.address)));
    Object nbytes = checked(PyLong_FromSize_t(block.nbytes));
    Object object = call<"number">(storages_, address.get(), nbytes.get());
    const Number number{as_long(object), object};
    blocks_.emplace(block, number);
    return number;
  }

  long thread_number() const {
    thread_local long serial = 0, number = 0;
    if (serial != serial_) {
      number = as_long(attribute<"number">(attribute<"thread">(recording_)));
      serial = serial_;
    }
    return number;
  }

  // An OperatorCall as JSON, without what is as usual.
  static std::string text(long index, long launch, long signature, const std::vector<Number>& storages, long site,
                          long thread) {
    std::string line = "{\"index\":" + std::to_string(index) + ",\"launch\":" + std::to_string(launch) +
                       ",\"signature\":" + std::to_string(signature) + ",\"storages\":[";
    for (const Number& storage : storages) line += std::to_string(storage.value) + ",";
    if (!storages.empty()) line.pop_back();
    line += "]";
    if (site != -1) line += ",\"site\":" + std::to_string(site);
    if (thread != 0) line += ",\"thread\":" + std::to_string(thread);
    return line + "}";
  }

  void allocated(PyObject* storage) {
    const int known = PyDict_Contains(writes_.get(), storage);
    checked(known);
    if (known) checked(PyDict_DelItem(writes_.get(), storage));
  }

  // The frequent cases of LastWriters.wrote: nothing else lies in the storage.
  void wrote(PyObject* storage, const Object& write) {
    PyObject* meta = PyTuple_GET_ITEM(write.get(), 0);
    PyObject* earlier = PyDict_GetItemWithError(writes_.get(), storage);
    if (earlier == nullptr && PyErr_Occurred()) throw PythonError();
    if (earlier != nullptr) {
      PyObject* first = PyList_GET_SIZE(earlier) == 1 ? PyList_GET_ITEM(earlier, 0) : nullptr;
      if (first == write.get()) return;
      if (first == nullptr || PyTuple_GET_ITEM(first, 0) != meta) {
        Object metas = checked(PyTuple_Pack(1, meta)), storages = checked(PyTuple_Pack(1, storage));
        call<"wrote">(writers_, PyTuple_GET_ITEM(write.get(), 1), metas.get(), storages.get());
        return;
      }
    }
    Object only = checked(PyList_New(1));
    PyList_SET_ITEM(only.get(), 0, Object(write).release());
    checked(PyDict_SetItem(writes_.get(), storage, only.get()));
  }

  static constexpr size_t kBlocks = 1 << 14;  // that are remembered

  Object calls_, recording_, storages_, segments_, writers_, writes_, held_, lock_;
  Py_ssize_t longest_;
  CallSites sites_;
  std::unordered_map<Block, Number, BlockHash> blocks_;
  long serial_ = 0, segment_ = -1;
};
