// Digests from what the digest kernels wrote: the compiled form of `digested` and `digest_objects` in
// tracing/digest/gpu.py.
#pragma once

#include <Python.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "host_digest.h"
#include "python_objects.h"

// The content of an array of int64 while it exists.
class Integers {
 public:
  // columns: that it must have
  Integers(PyObject* array, Py_ssize_t columns) {
    checked(PyObject_GetBuffer(array, &memory_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT));
    if (memory_.ndim != 2 || memory_.itemsize != sizeof(int64_t) || memory_.shape[1] != columns) {
      PyBuffer_Release(&memory_);
      throw std::runtime_error("an array of another shape or dtype");
    }
  }
  Integers(const Integers&) = delete;
  ~Integers() { PyBuffer_Release(&memory_); }

  Py_ssize_t rows() const { return memory_.shape[0]; }
  const int64_t* row(Py_ssize_t i) const { return static_cast<const int64_t*>(memory_.buf) + i * memory_.shape[1]; }

 private:
  Py_buffer memory_;
};

// The sums of one tensor, as kernel.py's FIELDS orders them.
struct DigestSlot {
  static constexpr Py_ssize_t kFields = 5 + kRanges;

  uint64_t second;
  double norm;
  int64_t nan, inf, negative_zero;
  uint64_t firsts[kRanges];
};
static_assert(sizeof(DigestSlot) == DigestSlot::kFields * sizeof(int64_t));

// What is known of a tensor before its digest: a row of tables.py's `facts`.
struct TensorFacts {
  static constexpr Py_ssize_t kFields = 3;

  int64_t nbytes, ranges, tallied;
};

class DecodedDigests {
 public:
  explicit DecodedDigests(size_t count) { bits_.reserve(kDigestDigits * count); }

  void add(const DigestSlot& slot, const TensorFacts& facts) {
    if (facts.ranges < 0 || facts.ranges > static_cast<int64_t>(kRanges)) throw std::runtime_error("too many ranges");
    uint64_t first = 0;
    for (uint64_t one : slot.firsts) first += one;
    append_bits(first, slot.second, static_cast<uint64_t>(facts.nbytes), bits_);
    for (int64_t i = 0; i < facts.ranges; ++i) append_range(slot.firsts[i], tiles_);
    if (slot.nan != 0 || slot.inf != 0 || slot.negative_zero != 0) {
      const Object counts = checked(Py_BuildValue("(LLL)", slot.nan, slot.inf, slot.negative_zero));
      checked(PyDict_SetItem(special_.get(), checked(PyLong_FromSize_t(count_)).get(), counts.get()));
    }
    checked(PyList_Append(ranges_.get(), checked(PyLong_FromLongLong(facts.ranges)).get()));
    checked(PyList_Append(norms_.get(), checked(PyFloat_FromDouble(facts.tallied ? rounded(slot.norm) : NAN)).get()));
    ++count_;
  }

  size_t count() const { return count_; }

  // The members of `Columns`, and the first digest of each row.
  Object columns(const Object& firsts) const {
    const Object bits = text(bits_), tiles = text(tiles_);
    return checked(
        PyTuple_Pack(6, bits.get(), tiles.get(), ranges_.get(), norms_.get(), special_.get(), firsts.get()));
  }

 private:
  static Object text(const std::string& text) {
    return checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  }

  std::string bits_, tiles_;
  size_t count_ = 0;
  Object ranges_ = checked(PyList_New(0)), norms_ = checked(PyList_New(0)), special_ = checked(PyDict_New());
};

// The facts of the tensors of some rows, which share few `Sides`.
class RowFacts {
 public:
  // sides: a tuple whose third member has the facts of its tensors, before and after
  const std::vector<TensorFacts>& of(PyObject* sides) {
    const auto known = facts_.find(sides);
    if (known != facts_.end()) return known->second;
    std::vector<TensorFacts>& all = facts_[sides];
    const Object both = checked(PySequence_GetItem(sides, 2));
    for (Py_ssize_t side = 0; side < 2; ++side) {
      const Integers table(checked(PySequence_GetItem(both.get(), side)).get(), TensorFacts::kFields);
      for (Py_ssize_t i = 0; i < table.rows(); ++i) {
        const int64_t* row = table.row(i);
        all.push_back({row[0], row[1], row[2]});
      }
    }
    return all;
  }

 private:
  std::unordered_map<PyObject*, std::vector<TensorFacts>> facts_;
};

// The columns of the digests of some rows.
// slots: [n, fields] as written by the kernel
// firsts, sides: lists, of each row: its first slot, and its `Sides`
inline Object decoded(PyObject* slots, PyObject* firsts, PyObject* sides) {
  const Integers table(slots, DigestSlot::kFields);
  if (PyList_GET_SIZE(firsts) != PyList_GET_SIZE(sides)) throw std::runtime_error("firsts and sides differ in number");
  RowFacts facts;
  DecodedDigests digests(static_cast<size_t>(table.rows()));
  Object starts = checked(PyList_New(0));
  for (Py_ssize_t row = 0; row < PyList_GET_SIZE(firsts); ++row) {
    Py_ssize_t slot = PyLong_AsSsize_t(PyList_GET_ITEM(firsts, row));
    if (slot == -1 && PyErr_Occurred()) throw PythonError();
    checked(PyList_Append(starts.get(), checked(PyLong_FromSize_t(digests.count())).get()));
    for (const TensorFacts& one : facts.of(PyList_GET_ITEM(sides, row))) {
      if (slot < 0 || slot >= table.rows()) throw std::runtime_error("a slot outside of the batch");
      DigestSlot sums;
      std::memcpy(&sums, table.row(slot++), sizeof sums);
      digests.add(sums, one);
    }
  }
  return digests.columns(starts);
}

// Digests as objects of a type, from the members of `Columns`.
inline Object digest_objects(PyObject* type, const std::string_view bits, const std::string_view tiles,
                             PyObject* ranges, PyObject* norms, PyObject* special) {
  const Py_ssize_t count = PyList_GET_SIZE(ranges);
  if (PyList_GET_SIZE(norms) != count || bits.size() != kDigestDigits * static_cast<size_t>(count))
    throw std::runtime_error("columns of different lengths");
  const Object none = checked(PyLong_FromLong(0));
  Object list = checked(PyList_New(count));
  size_t start = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const size_t size = kRangeDigits * PyLong_AsSize_t(PyList_GET_ITEM(ranges, i));
    if (PyErr_Occurred()) throw PythonError();
    if (size > tiles.size() - start) throw std::runtime_error("columns of different lengths");
    const Object name = checked(PyUnicode_FromStringAndSize(bits.data() + kDigestDigits * i, kDigestDigits));
    const Object parts = checked(PyUnicode_FromStringAndSize(tiles.data() + start, static_cast<Py_ssize_t>(size)));
    start += size;
    PyObject* counts[] = {none.get(), none.get(), none.get()};
    if (PyDict_GET_SIZE(special) > 0) {
      PyObject* known = PyDict_GetItemWithError(special, checked(PyLong_FromSsize_t(i)).get());
      if (known == nullptr && PyErr_Occurred()) throw PythonError();
      for (Py_ssize_t at = 0; known != nullptr && at < 3; ++at) counts[at] = PyTuple_GET_ITEM(known, at);
    }
    PyObject* norm = PyList_GET_ITEM(norms, i);
    if (PyFloat_Check(norm) && std::isnan(PyFloat_AS_DOUBLE(norm))) norm = Py_None;
    PyObject* members[] = {name.get(), parts.get(), counts[0], counts[1], counts[2], norm};
    PyList_SET_ITEM(list.get(), i, checked(PyObject_Vectorcall(type, members, 6, nullptr)).release());
  }
  return list;
}
