// Timers, a Python type: LaunchTimers with the methods of tracing/record/launches/timers.py.
#pragma once

#include <Python.h>

#include "launch_times.h"
#include "python_objects.h"

struct TimersObject {
  PyObject_HEAD
  LaunchTimers* timers;
};

// Runs an action on the timers; its exceptions become Python's.
template <typename Action>
PyObject* on_timers(PyObject* self, Action action) {
  try {
    return action(*reinterpret_cast<TimersObject*>(self)->timers).release();
  } catch (const PythonError&) {
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

inline Object none() { return Object::borrowed(Py_None); }

inline PyObject* new_timers(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self != nullptr) reinterpret_cast<TimersObject*>(self)->timers = new LaunchTimers();
  return self;
}

inline void delete_timers(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<TimersObject*>(self)->timers;
  type->tp_free(self);
  Py_DECREF(type);
}

// start(launch, device, stream)
inline PyObject* start_timer(PyObject* self, PyObject* arguments) {
  long launch;
  int device;
  unsigned long long stream;
  if (!PyArg_ParseTuple(arguments, "liK", &launch, &device, &stream)) return nullptr;
  return on_timers(self, [&](LaunchTimers& timers) {
    if (device != LaunchTimers::kHost) ensure_context(device);
    timers.start(launch, device, reinterpret_cast<void*>(stream));
    return none();
  });
}

// stop(launch)
inline PyObject* stop_timer(PyObject* self, PyObject* launch) {
  return on_timers(self, [&](LaunchTimers& timers) {
    timers.stop(timers.running(as_long(Object::borrowed(launch))));
    return none();
  });
}

inline PyObject* timers_are_due(PyObject* self, PyObject*) {
  return on_timers(self, [](LaunchTimers& timers) { return Object(PyBool_FromLong(timers.due())); });
}

inline PyObject* lines_of_timers(PyObject* self, PyObject*) {
  return on_timers(self, [](LaunchTimers& timers) { return timers.lines(); });
}

inline PyObject* finish_timers(PyObject* self, PyObject*) {
  return on_timers(self, [](LaunchTimers& timers) { return timers.finish(), none(); });
}

// The type; null: an exception is set.
inline PyTypeObject* timers_type() {
  static PyMethodDef methods[] = {{"start", start_timer, METH_VARARGS, nullptr},
                                  {"stop", stop_timer, METH_O, nullptr},
                                  {"due", timers_are_due, METH_NOARGS, nullptr},
                                  {"lines", lines_of_timers, METH_NOARGS, nullptr},
                                  {"finish", finish_timers, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_timers)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(delete_timers)},
                                {Py_tp_methods, methods},
                                {0, nullptr}};
  static PyType_Spec spec = {"tracing.native.launches.Timers", sizeof(TimersObject), 0, Py_TPFLAGS_DEFAULT, slots};
  static auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

// Throws PythonError.
inline LaunchTimers& timers_of(const Object& object) {
  if (Py_TYPE(object.get()) != timers_type()) {
    PyErr_SetString(PyExc_TypeError, "the timers of known launches are those of this module");
    throw PythonError();
  }
  return *reinterpret_cast<TimersObject*>(object.get())->timers;
}
