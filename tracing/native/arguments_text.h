// The text of an operator's arguments, whose floating-point numbers may be others at each call.
#pragma once

#include <Python.h>
#include <c10/util/SmallVector.h>

#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "python_objects.h"

using Numbers = c10::SmallVector<int64_t, 8>;  // the bits of doubles: 0.0 and -0.0 differ, and NaN equals itself

class ArgumentsText {
 public:
  ArgumentsText() : parts_{""} {}
  // form: the text, in which tracing/operators/text.py's NUMBER stands for each number
  explicit ArgumentsText(const Object& form) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(form.get(), &size);
    if (text == nullptr) throw PythonError();
    std::string_view rest(text, static_cast<size_t>(size));
    for (size_t at; (at = rest.find(kNumber)) != rest.npos; rest.remove_prefix(at + 1)) {
      parts_.emplace_back(rest.substr(0, at));
    }
    parts_.emplace_back(rest);
  }

  size_t numbers() const { return parts_.size() - 1; }

  // Call it with the GIL held.
  std::string with(const Numbers& numbers) const {
    std::string text, written = parts_.front();
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (i == 0 || numbers[i] != numbers[i - 1]) text = as_python(std::bit_cast<double>(numbers[i]));
      written += text;
      written += parts_[i + 1];
    }
    return written;
  }

 private:
  static constexpr char kNumber = '\0';

  static std::string as_python(double number) {
    char* text = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
    if (text == nullptr) throw PythonError();
    std::string copy(text);
    PyMem_Free(text);
    return copy;
  }

  std::vector<std::string> parts_;  // around the numbers
};
