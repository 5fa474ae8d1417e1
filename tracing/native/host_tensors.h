// Takes the digests of tensors on the host, and leaves those that only Python can read.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/ScalarType.h>
#include <pybind11/pybind11.h>

#include <array>
#include <bit>
#include <optional>

#include "host_digest.h"
#include "operator_keys.h"
#include "python_objects.h"

// Adds the statistics of a tile of values, whose first bytes are a tensor's.
using Tally = void (*)(HostDigest& digest, const uint8_t* tile, size_t nbytes);

template <typename Format>
void tally(HostDigest& digest, const uint8_t* tile, size_t nbytes) {
  digest.tally<Format>(tile, nbytes);
}

// Of floats of one byte.
template <typename Float8>
void tally_bytes(HostDigest& digest, const uint8_t* tile, size_t nbytes) {
  static const auto numbers = [] {
    std::array<float, 256> all;
    for (int i = 0; i < 256; ++i) all[i] = static_cast<float>(std::bit_cast<Float8>(static_cast<uint8_t>(i)));
    return all;
  }();
  for (size_t i = 0; i < nbytes; ++i) digest.tally(numbers[tile[i]]);
}

inline void no_values(HostDigest&, const uint8_t*, size_t) {}

// Null: Python takes digests of this dtype.
inline Tally tally_of(c10::ScalarType dtype) {
  using enum c10::ScalarType;
  switch (dtype) {
    case Double: case ComplexDouble: return tally<Float64>;
    case Float: case ComplexFloat: return tally<Float32>;
    case Half: case ComplexHalf: return tally<Float16>;
    case BFloat16: return tally<::BFloat16>;
    case Float8_e4m3fn: return tally_bytes<c10::Float8_e4m3fn>;
    case Float8_e4m3fnuz: return tally_bytes<c10::Float8_e4m3fnuz>;
    case Float8_e5m2: return tally_bytes<c10::Float8_e5m2>;
    case Float8_e5m2fnuz: return tally_bytes<c10::Float8_e5m2fnuz>;
    case Bool: case Byte: case Char: case Short: case Int: case Long: case UInt16: case UInt32: case UInt64:
      return no_values;
    default: return nullptr;
  }
}

// The bytes of a tensor's elements in logical order.
class ElementBytes {
 public:
  explicit ElementBytes(const at::TensorBase& tensor)
      : tensor_(tensor),
        size_(tensor.itemsize()),
        contiguous_(tensor.is_contiguous()),
        next_(static_cast<const uint8_t*>(tensor.const_data_ptr())),
        index_(tensor.dim()) {}

  // The next `nbytes` bytes as a tile, which zeros fill; valid until the next call.
  const uint8_t* tile(size_t nbytes) {
    if (contiguous_ && nbytes == kTileBytes) return std::exchange(next_, next_ + nbytes);
    if (contiguous_) {
      std::memcpy(tile_, next_, nbytes);
    } else {
      for (size_t filled = 0; filled < nbytes;) filled += row(tile_ + filled, nbytes - filled);
    }
    std::fill(tile_ + nbytes, tile_ + kTileBytes, 0);
    return tile_;
  }

 private:
  // Copies elements of one row; returns their bytes.
  size_t row(uint8_t* to, size_t nbytes) {
    const size_t last = index_.size() - 1;
    const size_t count = std::min<size_t>(tensor_.size(last) - index_[last], nbytes / size_);
    const int64_t stride = tensor_.stride(last) * size_;
    switch (size_) {
      case 1: copy<1>(to, stride, count); break;
      case 2: copy<2>(to, stride, count); break;
      case 4: copy<4>(to, stride, count); break;
      case 8: copy<8>(to, stride, count); break;
      default: copy<16>(to, stride, count);
    }
    next_ += stride * count;
    index_[last] += count;
    for (size_t d = last; d > 0 && index_[d] == tensor_.size(d); --d) {
      next_ += (tensor_.stride(d - 1) - tensor_.stride(d) * index_[d]) * size_;
      index_[d] = 0;
      ++index_[d - 1];
    }
    return count * size_;
  }

  template <size_t size>
  void copy(uint8_t* to, int64_t stride, size_t count) const {
    for (size_t i = 0; i < count; ++i) std::memcpy(to + i * size, next_ + i * stride, size);
  }

  const at::TensorBase& tensor_;
  const int64_t size_;
  const bool contiguous_;
  const uint8_t* next_;
  c10::SmallVector<int64_t, 8> index_;  // of the next element, if they are not contiguous
  alignas(64) uint8_t tile_[kTileBytes];
};

// True if the elements of a tensor lie in its storage: its storage was neither freed nor cut.
inline bool has_elements(const at::TensorBase& tensor) {
  if (tensor.numel() == 0) return true;
  int64_t last = tensor.storage_offset();
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return (last + 1) * tensor.itemsize() <= tensor.storage().nbytes() && tensor.const_data_ptr() != nullptr;
}

// True if C++ reads a plain tensor.
inline bool is_readable(const at::TensorBase& tensor) {
  const bool lazy = tensor.is_conj() || tensor.is_neg() || tensor._is_zerotensor();
  return tensor.is_cpu() && !lazy && tally_of(tensor.scalar_type()) != nullptr && has_elements(tensor);
}

// Needs no GIL.
inline HostDigest host_digest(const at::TensorBase& tensor) {
  const size_t nbytes = tensor.nbytes();
  const Tally tally = tally_of(tensor.scalar_type());
  HostDigest digest(nbytes);
  ElementBytes bytes(tensor);
  for (size_t start = 0; start < nbytes; start += kTileBytes) {
    const size_t size = std::min(kTileBytes, nbytes - start);
    const uint8_t* tile = bytes.tile(size);
    digest.add(tile);
    tally(digest, tile, size);
  }
  return digest;
}

// A digest as Python's object.
inline Object as_object(const HostDigest& digest, c10::ScalarType dtype) {
  static PyObject* const type = attribute<"Digest">(checked(PyImport_ImportModule("tracing.model"))).release();
  const std::string bits = digest.bits(), tiles = digest.tiles();
  if (tally_of(dtype) == no_values) return checked(PyObject_CallFunction(type, "ss", bits.c_str(), tiles.c_str()));
  return checked(PyObject_CallFunction(type, "ssKKKd", bits.c_str(), tiles.c_str(), digest.nan, digest.inf,
                                       digest.negative_zero, digest.l1()));
}

// A list of the digests of plain tensors; null: Python takes them. Call it with the GIL held.
inline Object host_digests(TensorsView tensors) {
  constexpr size_t kLarge = 1 << 16;  // bytes that are read without the GIL
  if (!std::all_of(tensors.begin(), tensors.end(), [](const auto* tensor) { return is_readable(*tensor); })) return {};
  size_t nbytes = 0;
  for (const at::TensorBase* tensor : tensors) nbytes += tensor->nbytes();
  c10::SmallVector<HostDigest, 4> digests;
  {
    std::optional<pybind11::gil_scoped_release> released;
    if (nbytes >= kLarge) released.emplace();
    for (const at::TensorBase* tensor : tensors) digests.push_back(host_digest(*tensor));
  }
  Object list = checked(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyList_SET_ITEM(list.get(), i, as_object(digests[i], tensors[i]->scalar_type()).release());
  return list;
}
