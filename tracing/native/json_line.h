// Builds the JSON text of one record.
#pragma once

#include <Python.h>

#include <charconv>
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

  JsonLine& operator<<(double number) {
    char* digits = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
    if (digits == nullptr) throw PythonError();
    text_.append(digits);
    PyMem_Free(digits);
    return *this;
  }

  // The text as a bytes object.
  Object bytes() const {
    return checked(PyBytes_FromStringAndSize(text_.data(), static_cast<Py_ssize_t>(text_.size())));
  }

 private:
  std::string text_;
};
