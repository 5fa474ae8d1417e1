// The functions that replace the allocators of generated code: the compiled form of tracing/operators/allocators.py.
#pragma once

#include <Python.h>
#include <structmember.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <memory>

#include "observer.h"

struct Allocator {
  std::shared_ptr<Observer> observer;
  Effect effect;
  Object allocate;  // the original
  Object text;      // (*arguments) -> their text
  Object python;    // (arguments, tensor) -> None; records the call
  Structure structure;

  PyObject* call(PyObject* const* arguments, Py_ssize_t count) {
    Object made(PyObject_Vectorcall(allocate.get(), arguments, static_cast<size_t>(count), nullptr));
    if (!made) return nullptr;
    try {
      record(made, arguments, count);
    } catch (python_error& error) {
      error.restore();
      return nullptr;
    } catch (const PythonError&) {
      return nullptr;
    }
    return made.release();
  }

 private:
  void record(const Object& made, PyObject* const* arguments, Py_ssize_t count) {
    auto packed = [&] {
      Object all = checked(PyTuple_New(count));
      for (Py_ssize_t i = 0; i < count; ++i)
        PyTuple_SET_ITEM(all.get(), i, Object::borrowed(arguments[i]).release());
      return all;
    };
    const bool recorded =
        THPVariable_CheckExact(made.get()) &&
        observer->allocated(effect, structure, THPVariable_Unpack(made.get()),
                            [&] { return checked(PyObject_CallObject(text.get(), packed().get())); });
    if (!recorded) checked(PyObject_CallFunctionObjArgs(python.get(), packed().get(), made.get(), nullptr));
  }
};

struct AllocatorObject {
  PyObject_HEAD
  vectorcallfunc call;
  Allocator* allocator;
  PyObject* dict;  // functools.wraps sets attributes
};

inline PyObject* call_allocator(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names) {
  if (names != nullptr && PyTuple_GET_SIZE(names) > 0) {
    PyErr_SetString(PyExc_TypeError, "an allocator of generated code takes no keyword arguments");
    return nullptr;
  }
  return reinterpret_cast<AllocatorObject*>(self)->allocator->call(arguments, PyVectorcall_NARGS(flags));
}

inline void release_allocator(PyObject* object) {
  auto* self = reinterpret_cast<AllocatorObject*>(object);
  PyTypeObject* type = Py_TYPE(object);
  delete self->allocator;
  Py_XDECREF(self->dict);
  type->tp_free(object);
  Py_DECREF(type);
}

inline PyTypeObject* allocator_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(AllocatorObject, call), READONLY, nullptr},
      {"__dictoffset__", T_PYSSIZET, offsetof(AllocatorObject, dict), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyGetSetDef attributes[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                                     {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(release_allocator)},
                                {Py_tp_members, members},
                                {Py_tp_getset, attributes},
                                {0, nullptr}};
  static PyType_Spec spec = {"tracing.native.operator_observer.Allocator", sizeof(AllocatorObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  static PyObject* type = checked(PyType_FromSpec(&spec)).release();
  return reinterpret_cast<PyTypeObject*>(type);
}

inline pybind11::object allocator(std::shared_ptr<Observer> observer, const pybind11::object& allocate,
                                  const pybind11::object& effect, const pybind11::object& text,
                                  const pybind11::object& python) {
  PyTypeObject* type = allocator_type();
  auto self = pybind11::reinterpret_steal<pybind11::object>(checked(type->tp_alloc(type, 0)).release());
  Effect known{Effect::RECORDED, Object::borrowed(effect.ptr()), {}, {}, {}, -1, false, true};
  auto* object = reinterpret_cast<AllocatorObject*>(self.ptr());
  object->call = call_allocator;
  object->allocator = new Allocator{std::move(observer), std::move(known), Object::borrowed(allocate.ptr()),
                                    Object::borrowed(text.ptr()), Object::borrowed(python.ptr()), {}};
  return self;
}

