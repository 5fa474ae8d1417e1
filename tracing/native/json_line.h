// Builds the JSON text of one record.
#pragma once

#include <Python.h>

#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "python_objects.h"

class JsonLine {
 public:
  JsonLine() { text_.reserve(256); }

  JsonLine& operator<<(std::string_view text) {
    text_.append(text);
    return *this;
  }

  JsonLine& operator<<(long number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    text_.append(digits, end);
    return *this;
  }

  // A string, between quotation marks.
  JsonLine& string(std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    text_ += '"';
    for (const char one : text) {
      if (one == '"' || one == '\\') text_ += '\\';
      if (static_cast<unsigned char>(one) >= 0x20) {
        text_ += one;
      } else {
        text_.append("\\u00").append({kHex[one >> 4], kHex[one & 15]});
      }
    }
    text_ += '"';
    return *this;
  }

  // A thousandth of a number that is not negative, as Python writes the quotient: 12 -> 0.012, 12000 -> 12.0
  JsonLine& thousandth(long number) {
    *this << number / 1000 << ".";
    const char digits[] = {digit(number / 100), digit(number / 10), digit(number)};
    const size_t count = digits[2] != '0' ? 3 : digits[1] != '0' ? 2 : 1;
    return *this << std::string_view(digits, count);
  }

  // The text as a bytes object.
  Object bytes() const {
    return checked(PyBytes_FromStringAndSize(text_.data(), static_cast<Py_ssize_t>(text_.size())));
  }

  void append_to(const Object& bytearray) const {
    const Py_ssize_t before = PyByteArray_GET_SIZE(bytearray.get());
    checked(PyByteArray_Resize(bytearray.get(), before + static_cast<Py_ssize_t>(text_.size())));
    std::memcpy(PyByteArray_AS_STRING(bytearray.get()) + before, text_.data(), text_.size());
  }

 private:
  static char digit(long number) { return static_cast<char>('0' + number % 10); }

  std::string text_;
};
