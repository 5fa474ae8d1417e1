// The LastWriters of tracing/native, callable from Python.
#include <Python.h>

#include "last_writers.h"

namespace {

std::vector<Argument> arguments(PyObject* list) {
  std::vector<Argument> all;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    long position;
    PyObject *storage, *meta;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "lOO", &position, &storage, &meta)) throw PythonError();
    all.push_back({position, Object::borrowed(storage), Object::borrowed(meta)});
  }
  return all;
}

LastWriters& compiled(PyObject* capsule) { return *static_cast<LastWriters*>(PyCapsule_GetPointer(capsule, nullptr)); }

template <typename Action>
PyObject* guarded(Action action) {
  try {
    return action().release();
  } catch (const PythonError&) {
    return nullptr;
  }
}

// compile(writers): the compiled form of a LastWriters
PyObject* compile(PyObject*, PyObject* writers) {
  return guarded([&] {
    auto* made = new LastWriters(Object::borrowed(writers));
    return checked(PyCapsule_New(made, nullptr, [](PyObject* capsule) { delete &compiled(capsule); }));
  });
}

// wrote(compiled, storage, alone)
PyObject* wrote(PyObject*, PyObject* values) {
  PyObject *self, *storage, *alone;
  if (!PyArg_ParseTuple(values, "OOO", &self, &storage, &alone)) return nullptr;
  return guarded([&] { return compiled(self).wrote(storage, Object::borrowed(alone)), Object::borrowed(Py_None); });
}

// allocated(compiled, storage)
PyObject* allocated(PyObject*, PyObject* values) {
  PyObject *self, *storage;
  if (!PyArg_ParseTuple(values, "OO", &self, &storage)) return nullptr;
  return guarded([&] { return compiled(self).allocated(storage), Object::borrowed(Py_None); });
}

// of(compiled, reads, writes) -> {position: operator}; reads, writes: [(position, storage, meta)]
PyObject* of(PyObject*, PyObject* values) {
  PyObject *self, *reads, *writes;
  if (!PyArg_ParseTuple(values, "OO!O!", &self, &PyList_Type, &reads, &PyList_Type, &writes)) return nullptr;
  return guarded([&] {
    Object operators = checked(PyDict_New());
    for (const auto& [position, name] : compiled(self).of(arguments(reads), arguments(writes)))
      checked(PyDict_SetItem(operators.get(), checked(PyLong_FromLong(position)).get(), name.get()));
    return operators;
  });
}

PyMethodDef functions[] = {{"compile", compile, METH_O, nullptr},
                           {"wrote", wrote, METH_VARARGS, nullptr},
                           {"allocated", allocated, METH_VARARGS, nullptr},
                           {"of", of, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "last_writers_records", nullptr, -1, functions};

}  // namespace

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_last_writers_records() {
  return PyModule_Create(&module);
}
