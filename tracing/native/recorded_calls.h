// Appends the lines of operators whose signature is known: the compiled form of tracing/record/operator_calls.py.
#pragma once

#include <unordered_map>
#include <vector>

#include "call_sites.h"
#include "counters.h"
#include "json_line.h"
#include "last_writers.h"
#include "operator_keys.h"
#include "python_objects.h"

// What is equal in all calls of an operator with equal arguments and layouts.
struct Signature {
  long number = 0;
  long segment = 0;            // of the run, that has its line
  Object known;                // a KnownSignature
  Numbers numbers;             // of the arguments in that line
  std::vector<Object> writes;  // ((layout, operator),) of each tensor that it writes, as LastWriters keeps them
};

using Blocks = c10::SmallVector<Block, 16>;

// All methods are called with the GIL and the lock of the recording held, and throw PythonError.
class RecordedCalls {
 public:
  // calls: a tracing.record.operator_calls.OperatorCalls
  explicit RecordedCalls(PyObject* calls)
      : calls_(Object::borrowed(calls)),
        recording_(attribute<"recording">(calls_)),
        storages_(attribute<"storages">(recording_)),
        segments_(attribute<"segments">(attribute<"writer">(recording_))),
        held_(attribute<"held">(calls_)),
        lock_(attribute<"lock">(recording_)),
        longest_(as_long(attribute<"longest">(calls_))),
        counters_(recording_),
        sites_(attribute<"sites">(recording_).get()),
        writers_(attribute<"writers">(calls_)) {
    static long recordings = 0;
    serial_ = ++recordings;
  }

  const Object& lock() const { return lock_; }

  // Writes the records that a line refers to, if the current segment of the run lacks them.
  void refresh(Signature& signature) {
    if (segments_.get() == Py_None) return;
    const long segment = as_long(attribute<"number">(segments_));
    if (segment != segment_) numbers_.clear();
    segment_ = segment;
    if (signature.segment == segment) return;
    signature.number = as_long(call<"refreshed">(calls_, signature.known.get()));
    signature.segment = segment;
  }

  // arguments: their text, if it differs from that of the signature; empty: it does not
  // Returns the number of the operator.
  long append(const Signature& signature, const Blocks& blocks, bool allocates, const std::string& arguments) {
    Storages storages;
    for (const Block& block : blocks) storages.push_back(numbered(block));
    const long site = sites_.current(), thread = thread_number();
    const long index = counters_.operators()++;
    hold(index, counters_.launches(), signature.number, storages, site, thread, arguments);
    if (PyByteArray_GET_SIZE(held_.get()) >= longest_) call<"flush_hidden">(calls_);
    const size_t reads = blocks.size() - signature.writes.size();
    for (size_t i = 0; i < signature.writes.size(); ++i) {
      PyObject* storage = storages[reads + i].get();
      allocates ? writers_.allocated(storage) : writers_.wrote(storage, signature.writes[i]);
    }
    return index;
  }

 private:
  static constexpr size_t kBlocks = 1 << 14;  // that are remembered

  using Storages = c10::SmallVector<Object, 16>;  // their numbers

  Object numbered(const Block& block) {
    auto known = numbers_.find(block);
    if (known != numbers_.end()) return known->second;
    if (numbers_.size() >= kBlocks) numbers_.clear();
    Object address = checked(PyLong_FromVoidPtr(const_cast<void*>(block.address)));
    Object nbytes = checked(PyLong_FromSize_t(block.nbytes));
    return numbers_[block] = call<"number">(storages_, address.get(), nbytes.get());
  }

  long thread_number() const {
    thread_local long serial = 0, number = 0;
    if (serial != serial_) {
      number = as_long(attribute<"number">(attribute<"thread">(recording_)));
      serial = serial_;
    }
    return number;
  }

  // Appends the line of an OperatorCall as JSON, without what is as usual.
  void hold(long index, long launch, long signature, const Storages& storages, long site, long thread,
            const std::string& arguments) {
    JsonLine line;
    line << "{\"index\":" << index << ",\"launch\":" << launch << ",\"signature\":" << signature << ",\"storages\":[";
    std::string_view separator;
    for (const Object& storage : storages) {
      line << separator << as_long(storage);
      separator = ",";
    }
    line << "]";
    if (site != -1) line << ",\"site\":" << site;
    if (thread != 0) line << ",\"thread\":" << thread;
    if (!arguments.empty()) (line << ",\"arguments\":").string(arguments);
    line << "}\n";
    line.append_to(held_);
  }

  Object calls_, recording_, storages_, segments_, held_, lock_;
  Py_ssize_t longest_;
  Counters counters_;
  CallSites sites_;
  LastWriters writers_;
  std::unordered_map<Block, Object, BlockHash> numbers_;
  long serial_ = 0, segment_ = -1;
};
