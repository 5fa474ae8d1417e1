// What identifies the record of an operator's call: the values of its arguments, and the layouts of its tensors.
#pragma once

#include <ATen/core/TensorBase.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <bit>
#include <cstring>

#include "arguments_text.h"
#include "words.h"

using Tensors = c10::SmallVector<const at::TensorBase*, 16>;
using TensorsView = c10::ArrayRef<const at::TensorBase*>;

// A tensor with memory and strides, and no `__torch_dispatch__`; all others are left to Python.
inline bool is_plain(const at::TensorBase& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const c10::DispatchKeySet keys = impl->key_set();
  return keys.has(c10::DispatchKey::Dense) && !keys.has(c10::DispatchKey::Python) &&
         !keys.has(c10::DispatchKey::ZeroTensor) && impl->has_storage() && !impl->is_meta() &&
         !impl->has_symbolic_sizes_strides();
}

// A number of the program that torch has put into a tensor; Python receives the number.
inline bool is_number(const at::TensorBase& tensor) {
  return tensor.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

// Appends the tensors of an argument or a result, lists of them included.
inline void collect(const c10::IValue& value, Tensors& tensors) {
  if (value.isTensor()) {
    const at::TensorBase& tensor = value.toTensor();
    if (tensor.defined() && !is_number(tensor)) tensors.push_back(&tensor);
  } else if (value.isList()) {
    for (const c10::IValue& member : value.toListRef()) collect(member, tensors);
  }
}

inline void append_text(const std::string& text, Key& key) {
  key.push_back(static_cast<int64_t>(text.size()));
  for (size_t at = 0; at < text.size(); at += sizeof(int64_t)) {
    int64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(sizeof word, text.size() - at));
    key.push_back(word);
  }
}

inline void append_complex(c10::complex<double> number, Key& key) {
  key.append({'c', std::bit_cast<int64_t>(number.real()), std::bit_cast<int64_t>(number.imag())});
}

// Appends a number to those of the call; to the key, if all calls with this key have it.
inline void append_double(double number, Key& key, Numbers* numbers) {
  const auto bits = std::bit_cast<int64_t>(number);
  if (numbers == nullptr) return key.append({'d', bits});
  key.push_back('d');
  numbers->push_back(bits);
}

inline bool append_number(const at::TensorBase& tensor, Key& key, Numbers* numbers) {
  const void* data = tensor.const_data_ptr();
  switch (tensor.scalar_type()) {
    case c10::ScalarType::Long: key.append({'i', *static_cast<const int64_t*>(data)}); return true;
    case c10::ScalarType::Bool: key.push_back(*static_cast<const bool*>(data) ? 'T' : 'F'); return true;
    case c10::ScalarType::Double: append_double(*static_cast<const double*>(data), key, numbers); return true;
    case c10::ScalarType::ComplexDouble:
      append_complex(*static_cast<const c10::complex<double>*>(data), key);
      return true;
    default: return false;
  }
}

// Appends an argument without the layouts of its tensors: all that tracing/operators/text.py writes of it.
// numbers: receives its floating-point numbers, which are not part of the key; null: they are part of it
// False: only Python knows its text.
inline bool append_value(const c10::IValue& value, Key& key, Numbers* numbers) {
  if (value.isTensor()) {
    const at::TensorBase& tensor = value.toTensor();
    if (is_number(tensor)) return tensor.is_cpu() && append_number(tensor, key, numbers);
    key.push_back(tensor.defined() ? 't' : 'n');
  } else if (value.isNone()) {
    key.push_back('n');
  } else if (value.isInt()) {
    key.append({'i', value.toInt()});
  } else if (value.isDouble()) {
    append_double(value.toDouble(), key, numbers);
  } else if (value.isBool()) {
    key.push_back(value.toBool() ? 'T' : 'F');
  } else if (value.isList()) {
    const auto members = value.toListRef();
    key.append({'l', static_cast<int64_t>(members.size())});
    for (const c10::IValue& member : members) {
      if (!append_value(member, key, numbers)) return false;
    }
  } else if (value.isString()) {
    key.push_back('s');
    append_text(value.toStringRef(), key);
  } else if (value.isDevice()) {
    const c10::Device device = value.toDevice();
    key.append({'v', static_cast<int64_t>(device.type()), device.index()});
  } else if (value.isComplexDouble()) {
    append_complex(value.toComplexDouble(), key);
  } else {
    return false;
  }
  return true;
}

// Appends all arguments of a call. A number that is the default of its argument is part of the key, because Python
// does not receive it.
inline bool append_arguments(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, Key& key,
                             Numbers& numbers) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& usual = schema.arguments()[i].default_value();
    const bool is_usual = usual && usual->isDouble() && arguments[i].isDouble() &&
                          usual->toDouble() == arguments[i].toDouble();
    if (!append_value(arguments[i], key, is_usual ? nullptr : &numbers)) return false;
  }
  return true;
}

// Appends the layout of a plain tensor.
inline void append_layout(const at::TensorBase& tensor, Key& key) {
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  const c10::Device device = tensor.device();
  key.append({static_cast<int64_t>(sizes.size()), tensor.storage_offset(),
                         static_cast<int64_t>(tensor.scalar_type()),
                         (static_cast<int64_t>(device.type()) << 16) + device.index()});
  key.append(sizes.begin(), sizes.end());
  key.append(strides.begin(), strides.end());
}

// A block of memory: what tracing/launch/storages.py numbers.
struct Block {
  const void* address;
  size_t nbytes;
  bool operator==(const Block& other) const { return address == other.address && nbytes == other.nbytes; }
};

struct BlockHash {
  size_t operator()(const Block& block) const {
    return (reinterpret_cast<size_t>(block.address) ^ block.nbytes << 1) * 0x9E3779B97F4A7C15ull >> 7;
  }
};

inline Block block_of(const at::TensorBase& tensor) {
  const c10::Storage& storage = tensor.storage();
  return {storage.data(), storage.nbytes()};
}
