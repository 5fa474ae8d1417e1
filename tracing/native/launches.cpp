// The compiled form of recording a launch of generated code that was recorded before.
//
// `Launcher` replaces CachingAutotuner.run. A launch that it has not seen goes to the Python form, which records it;
// `KnownLaunches.learn` then keeps what is equal in all such launches.
#define PY_SSIZE_T_CLEAN  // for "#" in formats
#include <Python.h>
#include <structmember.h>

#include <memory>
#include <optional>

#include "arrived_digests.h"
#include "held_lines.h"
#include "hidden_launches.h"
#include "known_launches.h"

namespace {

std::shared_ptr<KnownLaunches> active;  // of the only recording; null: the Python form records

// ---- the function that replaces CachingAutotuner.run

struct Launcher {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* python;    // the Python form
  PyObject* original;  // CachingAutotuner.run
  PyObject* thread;    // a threading.local: its launches are hidden while `hidden` is above 0
  PyObject* dict;
};

// Hides the launches of this thread while it exists.
class Hidden {
 public:
  explicit Hidden(Launcher* self) : state_(state_of(self->thread)), before_(hidden_of(self->thread)) {
    const Object more = checked(PyLong_FromLong(as_long(before_) + 1));
    checked(PyDict_SetItem(state_, interned<"hidden">(), more.get()));
  }
  ~Hidden() {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyDict_SetItem(state_, interned<"hidden">(), before_.get());
    PyErr_Restore(type, value, traceback);
  }

 private:
  PyObject* state_;
  Object before_;
};

bool is_plain(PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  // run(autotuner, *arguments, stream=stream)
  return count > 0 && names != nullptr && PyTuple_GET_SIZE(names) == 1 &&
         PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "stream") == 0;
}

PyObject* launch_and_learn(Launcher* self, KnownLaunches& all, const Key& key, PyObject* const* arguments,
                           Py_ssize_t count, PyObject* names) {
  all.begin_learning();
  Object result(PyObject_Vectorcall(self->python, arguments, static_cast<size_t>(count), names));
  if (!result) return nullptr;
  try {
    all.learn(key, arguments[0], arguments[count]);
  } catch (const PythonError&) {
    if (!all.survived()) return nullptr;
  }
  return result.release();
}

// The recorder's own failure: false if it is to be raised.
bool failed(KnownLaunches& all, const std::exception& error) {
  PyErr_SetString(PyExc_RuntimeError, error.what());
  return all.survived();
}

// False: an exception is to be raised.
bool ended_deferred(KnownLaunches& all) {
  try {
    all.end_deferred();
  } catch (const PythonError&) {
    return all.survived();
  } catch (const std::exception& error) {
    return failed(all, error);
  }
  return true;
}

Object launch_original(Launcher* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  Hidden launches(self);
  return Object(PyObject_Vectorcall(self->original, arguments, static_cast<size_t>(count), names));
}

PyObject* launch_known(Launcher* self, KnownLaunches& all, const std::shared_ptr<KnownLaunch>& known,
                       PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  RunningLaunch running;
  try {
    all.before(*known, running);
  } catch (const PythonError&) {
    if (!all.survived()) return nullptr;
  } catch (const std::exception& error) {
    if (!failed(all, error)) return nullptr;
  }
  Object result = launch_original(self, arguments, count, names);
  if (!result || running.index < 0) return result.release();
  try {
    all.after(known, running);
  } catch (const PythonError&) {
    if (!all.survived()) return nullptr;
  } catch (const std::exception& error) {
    if (!failed(all, error)) return nullptr;
  }
  return result.release();
}

PyObject* launch(PyObject* object, PyObject* const* arguments, size_t flags, PyObject* names) {
  auto* self = reinterpret_cast<Launcher*>(object);
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  std::shared_ptr<KnownLaunches> all = active;
  auto python = [&] { return PyObject_Vectorcall(self->python, arguments, static_cast<size_t>(count), names); };
  if (!all || !is_plain(arguments, count, names)) return python();
  try {
    if (as_long(hidden_of(self->thread)) != 0) return python();
    if (all->passes_over()) return launch_original(self, arguments, count, names).release();
    std::optional<Key> key;
    try {
      key = all->key(arguments, count, arguments[count]);
      return launch_known(self, *all, all->known(*key), arguments, count, names);
    } catch (const NotKnown&) {
    }
    if (!ended_deferred(*all)) return nullptr;
    return key ? launch_and_learn(self, *all, *key, arguments, count, names) : python();
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyObject* bound(PyObject* self, PyObject* instance, PyObject* type) {
  return instance == nullptr || instance == Py_None ? (Py_INCREF(self), self) : PyMethod_New(self, instance);
}

void released(PyObject* object) {
  auto* self = reinterpret_cast<Launcher*>(object);
  PyTypeObject* type = Py_TYPE(object);
  for (PyObject* member : {self->python, self->original, self->thread, self->dict}) Py_XDECREF(member);
  type->tp_free(object);
  Py_DECREF(type);
}

PyMemberDef launcher_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launcher, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Launcher, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef launcher_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot launcher_slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(bound)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(released)},
                                {Py_tp_members, launcher_members},
                                {Py_tp_getset, launcher_attributes},
                                {0, nullptr}};

PyType_Spec launcher_spec = {"tracing.native.launches.Launcher", sizeof(Launcher), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                             launcher_slots};

PyObject* launcher_type = nullptr;

// launcher(python, original, thread): a function that replaces `original`
PyObject* launcher(PyObject*, PyObject* arguments) {
  PyObject *python, *original, *thread;
  if (!PyArg_ParseTuple(arguments, "OOO", &python, &original, &thread)) return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(launcher_type);
  auto* self = reinterpret_cast<Launcher*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = launch;
  self->python = (Py_INCREF(python), python);
  self->original = (Py_INCREF(original), original);
  self->thread = (Py_INCREF(thread), thread);
  return reinterpret_cast<PyObject*>(self);
}

// record(recorder): known launches are recorded by it from now on; None: by the Python form
PyObject* record(PyObject*, PyObject* recorder) {
  try {
    active = recorder == Py_None ? nullptr : std::make_shared<KnownLaunches>(recorder);
  } catch (const PythonError&) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

// The result of `action`; null, with a Python exception, if it throws.
template <typename Action>
PyObject* returned(Action action) {
  try {
    return action().release();
  } catch (const PythonError&) {
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// decoded(slots, firsts, sides): the members of `Columns`, and the first digest of each row
PyObject* decoded_columns(PyObject*, PyObject* arguments) {
  PyObject *slots, *firsts, *sides;
  if (!PyArg_ParseTuple(arguments, "OO!O!", &slots, &PyList_Type, &firsts, &PyList_Type, &sides)) return nullptr;
  return returned([&] { return decoded(slots, firsts, sides); });
}

// digests(type, bits, tiles, ranges, l1, special): objects of this type
PyObject* digests_of_columns(PyObject*, PyObject* arguments) {
  PyObject *type, *ranges, *norms, *special;
  const char *bits, *tiles;
  Py_ssize_t bits_size, tiles_size;
  if (!PyArg_ParseTuple(arguments, "Os#s#O!O!O!", &type, &bits, &bits_size, &tiles, &tiles_size, &PyList_Type,
                        &ranges, &PyList_Type, &norms, &PyDict_Type, &special))
    return nullptr;
  const std::string_view digits(bits, bits_size), parts(tiles, tiles_size);
  return returned([&] { return digest_objects(type, digits, parts, ranges, norms, special); });
}

// keep(lines, path): a fatal signal appends these lines to this file
PyObject* keep(PyObject*, PyObject* arguments) {
  PyObject* lines;
  const char* path;
  if (!PyArg_ParseTuple(arguments, "Os", &lines, &path)) return nullptr;
  try {
    HeldLines::keep(lines, path);
  } catch (const PythonError&) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

// release(lines): it no longer does
PyObject* release(PyObject*, PyObject* lines) {
  HeldLines::release(lines);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"launcher", launcher, METH_VARARGS, nullptr},
                           {"record", record, METH_O, nullptr},
                           {"decoded", decoded_columns, METH_VARARGS, nullptr},
                           {"digests", digests_of_columns, METH_VARARGS, nullptr},
                           {"keep", keep, METH_VARARGS, nullptr},
                           {"release", release, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "launches", nullptr, -1, functions};

}  // namespace

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_launches() {
  launcher_type = PyType_FromSpec(&launcher_spec);
  PyObject* made = launcher_type == nullptr ? nullptr : PyModule_Create(&module);
  if (made == nullptr || PyModule_AddType(made, timers_type()) == 0) return made;
  Py_DECREF(made);
  return nullptr;
}
