// References to Python objects that are released by themselves, and Python's exceptions as C++ ones.
#pragma once

#include <Python.h>

#include <algorithm>
#include <utility>

// A Python exception is set.
struct PythonError {};

class Object {
 public:
  Object() = default;
  explicit Object(PyObject* owned) : object_(owned) {}
  static Object borrowed(PyObject* object) {
    Py_XINCREF(object);
    return Object(object);
  }
  Object(const Object& other) : object_(other.object_) { Py_XINCREF(object_); }
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// A reference that is kept while the GIL may not be held.
class Kept {
 public:
  Kept() = default;
  explicit Kept(Object object) : object_(object.release()) {}
  Kept(const Kept&) = delete;
  ~Kept() {
    if (object_ == nullptr) return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(object_);
    PyGILState_Release(state);
  }

  // Call it with the GIL held.
  Object released() { return Object(std::exchange(object_, nullptr)); }

 private:
  PyObject* object_ = nullptr;
};

// The result of a call of Python's C interface, which returns a new reference, or null and sets an exception.
inline Object checked(PyObject* result) {
  if (result == nullptr) throw PythonError();
  return Object(result);
}

inline void checked(int status) {
  if (status < 0) throw PythonError();
}

// The exception that is set; afterwards none is.
inline Object raised() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return Object(value);
}

// True if the exception that is set is the recorder's own error; False: it is the program's, as KeyboardInterrupt.
inline bool is_recorders() { return PyErr_ExceptionMatches(PyExc_Exception) != 0; }

inline long as_long(const Object& number) {
  long value = PyLong_AsLong(number.get());
  if (value == -1 && PyErr_Occurred()) throw PythonError();
  return value;
}

// The address of an object of CUDA's driver.
inline void* as_handle(const Object& number) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(number.get());
  if (PyErr_Occurred()) throw PythonError();
  return reinterpret_cast<void*>(value);
}

// A name in the program's text, as a template argument.
template <size_t N>
struct Text {
  char characters[N];
  constexpr Text(const char (&text)[N]) { std::copy(text, text + N, characters); }
};

// The one string object of a name.
template <Text name>
PyObject* interned() {
  static PyObject* const text = PyUnicode_InternFromString(name.characters);
  return text;
}

// object.name
template <Text name>
Object attribute(const Object& object) {
  return checked(PyObject_GetAttr(object.get(), interned<name>()));
}

// object.name = value
template <Text name>
void set(const Object& object, PyObject* value) {
  checked(PyObject_SetAttr(object.get(), interned<name>(), value));
}

// object.name += count; returns the new value
template <Text name>
long add(const Object& object, long count) {
  long value = as_long(attribute<name>(object)) + count;
  set<name>(object, checked(PyLong_FromLong(value)).get());
  return value;
}

// object.name(*arguments)
template <Text name, typename... Arguments>
Object call(const Object& object, Arguments*... arguments) {
  PyObject* all[] = {object.get(), arguments...};
  return checked(PyObject_VectorcallMethod(interned<name>(), all, sizeof...(arguments) + 1, nullptr));
}
