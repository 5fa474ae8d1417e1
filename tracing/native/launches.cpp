// A launch of generated code that was recorded before with equal arguments at equal addresses, recorded again.
//
// `Launcher` replaces CachingAutotuner.run. A launch that it has not seen goes to the Python form, which
// records it; `Path.learn` then keeps what is equal in all such launches. What the Python form does for a
// known one is in LaunchRecorder._before and _after; both append to the same list of lines.

#include <Python.h>
#include <structmember.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "call_sites.h"
#include "digests.h"
#include "last_writers.h"
#include "python_objects.h"

namespace {

// The launch is not known, or something is going on that only the Python form handles.
struct NotKnown {};

struct KnownLaunch {
  Object kept;       // its autotuner, the generated code and its slots: their addresses stay their own
  std::string line;  // its middle: "signature":3,"stream":0,"storages":[1,2]
  std::vector<Argument> reads, writes;
  LaunchDigests digests;
};

// The arguments of a launch and where it is made, as bytes that are equal for equal launches.
class Key {
 public:
  Key() { bytes_.reserve(256); }

  void add(const void* data, size_t size) { bytes_.append(static_cast<const char*>(data), size); }

  template <typename Value>
  void add(char kind, Value value) {
    bytes_.push_back(kind);
    add(&value, sizeof value);
  }

  // Throws NotKnown for a value that has no such form.
  void add_argument(PyObject* value) {
    if (THPVariable_CheckExact(value)) return add_tensor(THPVariable_Unpack(value));
    if (PyLong_CheckExact(value)) {
      int overflow = 0;
      add('i', PyLong_AsLongLongAndOverflow(value, &overflow));
      if (overflow != 0) throw NotKnown();
    } else if (PyFloat_CheckExact(value)) {
      add('f', PyFloat_AS_DOUBLE(value));
    } else if (PyBool_Check(value) || value == Py_None) {
      add('o', value);
    } else {
      throw NotKnown();
    }
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void add_tensor(const at::Tensor& tensor) {
    const auto* tensor_impl = tensor.unsafeGetTensorImpl();
    if (!tensor_impl->has_storage() || tensor_impl->is_python_dispatch()) throw NotKnown();
    const auto* storage = tensor_impl->unsafe_storage().unsafeGetStorageImpl();
    add('t', storage->data());
    add('+', tensor_impl->storage_offset());
    add('n', storage->nbytes());
    if (!shaped_) {  // the layouts of the others follow from it, as the code is generated for them
      shaped_ = true;
      auto sizes = tensor_impl->sizes();
      add(sizes.data(), sizes.size() * sizeof(int64_t));
    }
  }

  std::string bytes_;
  bool shaped_ = false;
};

// What launches of one recording are recorded into.
class Path {
 public:
  // recorder: what tracing.record.launches.fast_launches makes of a LaunchRecorder
  explicit Path(PyObject* recorder)
      : recorder_(Object::borrowed(recorder)),
        thread_(attribute<"thread">(recorder_)),
        lock_(attribute<"lock">(recorder_)),
        held_(attribute<"held">(recorder_)),
        waiting_(attribute<"waiting">(recorder_)),
        capturing_(attribute<"capturing">(recorder_)),
        generated_(attribute<"generated">(recorder_)),
        recording_(attribute<"recording">(recorder_)),
        failsafe_(attribute<"failsafe">(recorder_)),
        sites_(attribute<"sites">(recorder_).get()),
        writers_(attribute<"writers">(recorder_)) {
    static long paths = 0;
    serial_ = ++paths;
  }

  // The key of a launch by generated code. Throws NotKnown.
  Key key(PyObject* const* arguments, Py_ssize_t count, PyObject* stream) {
    PyFrameObject* frame = PyEval_GetFrame();
    if (frame == nullptr) throw NotKnown();
    Object code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    if (!is_generated(code)) throw NotKnown();
    Key key;
    key.add('c', code.get());
    key.add('@', CallSites::instruction(frame));
    key.add('a', arguments[0]);
    key.add_argument(stream);
    for (Py_ssize_t i = 1; i < count; i++) key.add_argument(arguments[i]);
    return key;
  }

  KnownLaunch& known(const Key& key) {
    auto found = launches_.find(key.bytes());
    if (found == launches_.end()) throw NotKnown();
    return *found->second;
  }

  // Records a launch that is about to be made. Returns its number. Throws NotKnown, PythonError.
  long before(const KnownLaunch& launch, LaunchDigests::Slots& slots) {
    long thread = thread_number();
    if (attribute<"over">(failsafe_).get() != Py_False) throw NotKnown();
    if (checked(PyObject_CallNoArgs(capturing_.get())).get() != Py_False) throw NotKnown();
    Locked locked(lock_, false);
    auto operators = writers_.of(launch.reads, launch.writes);
    if (PyList_GET_SIZE(held_.get()) >= kLines) call<"flush">(recorder_);
    long index = add<"launches">(recording_, 1) - 1;
    add<"recorded">(recording_, 1);
    Object line = checked(text(launch, index, operators, sites_.current(), thread));
    checked(PyList_Append(held_.get(), line.get()));
    if (launch.digests) {
      Object number = checked(PyLong_FromLong(index));
      call<"append">(waiting_, number.get());
      slots = launch.digests.before();
    }
    return index;
  }

  void after(const KnownLaunch& launch, const LaunchDigests::Slots& slots, long index) {
    if (!launch.digests) return;
    Locked locked(lock_, true);
    launch.digests.after(slots, index);
  }

  // The Python form is about to record a launch.
  void begin_learning() { set<"slots">(thread_, Py_None); }

  // Keeps what the Python form has recorded, if it is equal in all launches with this key.
  void learn(const Key& key, PyObject* autotuner, PyObject* stream) {
    Object slots = attribute<"slots">(thread_);
    if (slots.get() == Py_None) return;
    Object facts = call<"facts">(recorder_, slots.get(), stream);
    if (facts.get() == Py_None) return;
    auto launch = std::make_unique<KnownLaunch>();
    const char* line;
    PyObject *reads, *writes, *digests;
    if (!PyArg_ParseTuple(facts.get(), "yO!O!O", &line, &PyList_Type, &reads, &PyList_Type, &writes, &digests))
      throw PythonError();
    Object code(reinterpret_cast<PyObject*>(PyFrame_GetCode(PyEval_GetFrame())));
    launch->kept = checked(PyTuple_Pack(3, autotuner, code.get(), slots.get()));
    launch->line = line;
    launch->reads = tensors(reads);
    launch->writes = tensors(writes);
    if (digests != Py_None) launch->digests = LaunchDigests(recorder_, digests);
    number_of_thread().path = serial_;
    number_of_thread().number = as_long(attribute<"number">(thread_));
    if (launches_.size() >= kKnown) launches_.clear();
    launches_[key.bytes()] = std::move(launch);
  }

  // The recorder's own error, which is set: the recording ends, and the program continues unless it is strict.
  bool survived() {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != nullptr) PyException_SetTraceback(value, traceback);
    Object ended(PyObject_CallMethod(failsafe_.get(), "end", "O", value));
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return static_cast<bool>(ended);
  }

 private:
  static constexpr Py_ssize_t kLines = 256;     // held back at most
  static constexpr size_t kKnown = 1 << 16;     // launches that are remembered

  // Holds the lock of the recording. wait: false to throw NotKnown if another thread holds it.
  class Locked {
   public:
    Locked(const Object& lock, bool wait) : lock_(lock) {
      if (call<"acquire">(lock_, wait ? Py_True : Py_False).get() != Py_True) throw NotKnown();
    }
    ~Locked() {
      PyObject *type, *value, *traceback;
      PyErr_Fetch(&type, &value, &traceback);
      Object released(PyObject_CallMethod(lock_.get(), "release", nullptr));
      PyErr_Restore(type, value, traceback);
    }

   private:
    const Object& lock_;
  };

  struct ThreadNumber {
    long path = 0;
    long number = 0;
  };

  static ThreadNumber& number_of_thread() {
    static thread_local ThreadNumber number;
    return number;
  }

  long thread_number() const {
    if (number_of_thread().path != serial_) throw NotKnown();  // the Python form has not seen this thread
    return number_of_thread().number;
  }

  bool is_generated(const Object& code) {
    auto known = is_generated_.find(code.get());
    if (known != is_generated_.end()) return known->second;
    Object name = attribute<"co_name">(code);
    int contained = PySequence_Contains(generated_.get(), name.get());
    checked(contained);
    codes_.push_back(code);
    return is_generated_[code.get()] = contained == 1;
  }

  static std::vector<Argument> tensors(PyObject* list) {
    std::vector<Argument> found;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
      long position;
      PyObject *storage, *meta;
      if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "lOO", &position, &storage, &meta)) throw PythonError();
      found.push_back({position, Object::borrowed(storage), Object::borrowed(meta)});
    }
    return found;
  }

  // A LaunchLine as JSON.
  PyObject* text(const KnownLaunch& launch, long index, const LastWriters::Operators& operators, long site,
                 long thread) {
    std::string line = "{\"index\":" + std::to_string(index) + "," + launch.line;
    const char* separator = ",\"writers\":{";
    for (const auto& [position, name] : operators) {
      line += separator + ("\"" + std::to_string(position) + "\":") + quoted(name);
      separator = ",";
    }
    if (!operators.empty()) line += "}";
    if (site != -1) line += ",\"site\":" + std::to_string(site);
    if (thread != 0) line += ",\"thread\":" + std::to_string(thread);
    line += "}";
    return PyBytes_FromStringAndSize(line.data(), static_cast<Py_ssize_t>(line.size()));
  }

  const std::string& quoted(const Object& name) {
    auto known = quoted_.find(name.get());
    if (known != quoted_.end()) return known->second;
    Object json = call<"json">(recorder_, name.get());
    const char* bytes = PyBytes_AsString(json.get());
    if (bytes == nullptr) throw PythonError();
    codes_.push_back(name);
    return quoted_[name.get()] = bytes;
  }

  Object recorder_, thread_, lock_, held_, waiting_, capturing_, generated_, recording_, failsafe_;
  CallSites sites_;
  LastWriters writers_;
  long serial_;
  std::unordered_map<std::string, std::unique_ptr<KnownLaunch>> launches_;
  std::unordered_map<PyObject*, bool> is_generated_;
  std::unordered_map<PyObject*, std::string> quoted_;
  std::vector<Object> codes_;  // alive: maps above have their addresses
};

std::shared_ptr<Path> active;  // of the only recording; null: the Python form records

// ---- the function that replaces CachingAutotuner.run

struct Launcher {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* python;    // the Python form
  PyObject* original;  // CachingAutotuner.run
  PyObject* thread;    // a threading.local: its launches are hidden while `hidden` is above 0
  PyObject* dict;
};

PyObject* hidden_name() {
  static PyObject* name = PyUnicode_InternFromString("hidden");
  return name;
}

Object hidden(Launcher* self) { return checked(PyObject_GetAttr(self->thread, hidden_name())); }

// Hides the launches of this thread while it exists.
class Hidden {
 public:
  explicit Hidden(Launcher* self) : self_(self), before_(hidden(self)) {
    Object one = checked(PyLong_FromLong(as_long(before_) + 1));
    checked(PyObject_SetAttr(self->thread, hidden_name(), one.get()));
  }
  ~Hidden() {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject_SetAttr(self_->thread, hidden_name(), before_.get());
    PyErr_Restore(type, value, traceback);
  }

 private:
  Launcher* self_;
  Object before_;
};

bool is_plain(PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  // run(autotuner, *arguments, stream=stream)
  return count > 0 && names != nullptr && PyTuple_GET_SIZE(names) == 1 &&
         PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "stream") == 0;
}

PyObject* launch_and_learn(Launcher* self, Path& path, const Key& key, PyObject* const* arguments,
                           Py_ssize_t count, PyObject* names) {
  path.begin_learning();
  Object result(PyObject_Vectorcall(self->python, arguments, static_cast<size_t>(count), names));
  if (!result) return nullptr;
  try {
    path.learn(key, arguments[0], arguments[count]);
  } catch (const PythonError&) {
    if (!path.survived()) return nullptr;
  }
  return result.release();
}

// The recorder's own failure: false if it is to be raised.
bool failed(Path& path, const std::exception& error) {
  PyErr_SetString(PyExc_RuntimeError, error.what());
  return path.survived();
}

PyObject* launch_known(Launcher* self, Path& path, const KnownLaunch& known, PyObject* const* arguments,
                       Py_ssize_t count, PyObject* names) {
  LaunchDigests::Slots slots;
  long index = -1;
  try {
    index = path.before(known, slots);
  } catch (const PythonError&) {
    if (!path.survived()) return nullptr;
  } catch (const std::exception& error) {
    if (!failed(path, error)) return nullptr;
  }
  Object result;
  {
    Hidden launches(self);
    result = Object(PyObject_Vectorcall(self->original, arguments, static_cast<size_t>(count), names));
  }
  if (!result || index < 0) return result.release();
  try {
    path.after(known, slots, index);
  } catch (const PythonError&) {
    if (!path.survived()) return nullptr;
  } catch (const std::exception& error) {
    if (!failed(path, error)) return nullptr;
  }
  return result.release();
}

PyObject* launch(PyObject* object, PyObject* const* arguments, size_t flags, PyObject* names) {
  auto* self = reinterpret_cast<Launcher*>(object);
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  std::shared_ptr<Path> path = active;
  auto python = [&] { return PyObject_Vectorcall(self->python, arguments, static_cast<size_t>(count), names); };
  if (!path || !is_plain(arguments, count, names)) return python();
  try {
    if (as_long(hidden(self)) != 0) return python();
    std::unique_ptr<Key> key;
    try {
      key = std::make_unique<Key>(path->key(arguments, count, arguments[count]));
      return launch_known(self, *path, path->known(*key), arguments, count, names);
    } catch (const NotKnown&) {
    }
    return key ? launch_and_learn(self, *path, *key, arguments, count, names) : python();
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
    active = recorder == Py_None ? nullptr : std::make_shared<Path>(recorder);
  } catch (const PythonError&) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"launcher", launcher, METH_VARARGS, nullptr},
                           {"record", record, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "launches", nullptr, -1, functions};

}  // namespace

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_launches() {
  launcher_type = PyType_FromSpec(&launcher_spec);
  return launcher_type == nullptr ? nullptr : PyModule_Create(&module);
}
