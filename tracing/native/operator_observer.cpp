// The compiled form of `Operators` (tracing/operators/dispatch.py) for operators whose arguments are known.
//
// Torch calls a dispatch mode by `PyInterpreterVTable::dispatch`. This file replaces that method: it runs an
// operator and records it if the innermost mode is one that an `Observer` watches. Operators, arguments and
// tensors that are not known yet, or that need Python, are passed on to the mode itself, which then teaches the
// observer. So the two forms see the same operators, on the same threads.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/torch_dispatch_mode.h>

#include <pthread.h>
#include <structmember.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "python_interpreter.h"
#include "recorded_calls.h"

namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

// What an operator reads and writes, by position in its schema: tracing/operators/effects.py's Effect.
struct Effect {
  enum Kind { PYTHON, IGNORED, RECORDED } kind = PYTHON;
  Object object;
  std::vector<int> reads, writes, outputs;
  int training = -1;  // position of the flag without which no argument is written
  bool check = false, allocates = false;
};

// The calls of an operator with equal arguments; its parts are used with the GIL held.
struct Structure {
  Object text;
  std::unordered_map<Words, std::shared_ptr<Signature>, WordsHash> by_layouts;
};

// Deletes what holds Python objects, on any thread.
struct WithGil {
  template <typename T>
  void operator()(T* one) const {
    py::gil_scoped_acquire gil;
    delete one;
  }
};

struct Operator {
  c10::OperatorName name{"", ""};  // its schema's address may become that of another operator
  std::shared_ptr<const Effect> effect;
  std::unordered_map<Words, std::shared_ptr<Structure>, WordsHash> structures;
};

class Observer;

// The call that is passed on to Python, and that is not known.
struct Asked {
  Observer* observer = nullptr;
  const c10::OperatorHandle* op = nullptr;
  const Words* structure = nullptr;  // null: only Python knows the text of its arguments
};
thread_local Asked asked;

struct AskedGuard {
  Asked before = asked;
  explicit AskedGuard(Asked now) { asked = now; }
  ~AskedGuard() { asked = before; }
};

class Observer {
 public:
  // mode, calls, shown: tracing's Operators, OperatorCalls and hooks.shown
  Observer(PyObject* mode, PyObject* calls, PyObject* shown)
      : mode_(mode), calls_(Object::borrowed(calls)), recorded_(calls), shown_(Object::borrowed(shown)) {
    failing_ = attribute<"failing">(Object::borrowed(mode));
    open_ = attribute<"open_graphs">(attribute<"captured">(calls_));
    partial_ = attribute<"partial">(calls_).get() == Py_True;
  }
  PyObject* mode() const { return mode_; }
  void close() { closed_ = true; }

  void dispatch(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                const ForwardedInterpreter& interpreter) {
    const auto& schema = op.schema();
    const size_t count = schema.arguments().size();
    const Arguments arguments(stack->data() + stack->size() - count, count);
    if (!all_plain(arguments)) return to_python(op, stack, interpreter, {});
    if (closed_) return run(op, stack);
    Words key;
    key.reserve(32);
    bool known = true;
    for (const c10::IValue& value : arguments) known = known && append_value(value, key);
    const auto [effect, structure] = known_of(op, known ? &key : nullptr);
    if (effect != nullptr && effect->kind == Effect::IGNORED) return run(op, stack);
    if (effect != nullptr && effect->kind == Effect::PYTHON) return to_python(op, stack, interpreter, {});
    if (PyList_GET_SIZE(open_.get()) > 0 || (partial_ && is_paused())) {
      return to_python(op, stack, interpreter, {});
    }
    if (structure == nullptr) return to_python(op, stack, interpreter, {this, &op, known ? &key : nullptr});
    const std::vector<c10::IValue> held(arguments.begin(), arguments.end());
    run(op, stack);
    const size_t returned = schema.returns().size();
    record(*effect, *structure, held, Arguments(stack->data() + stack->size() - returned, returned));
  }

  // What Python knows of the call that was passed on.
  void learn(Effect effect, Object text) {
    std::lock_guard lock(mutex_);
    Operator& one = operators_[&asked.op->schema()];
    if (one.effect == nullptr || one.name != asked.op->operator_name()) {
      one = {asked.op->operator_name(), std::shared_ptr<Effect>(new Effect(std::move(effect)), WithGil()), {}};
    }
    if (asked.structure != nullptr && one.effect->kind == Effect::RECORDED) {
      if (one.structures.size() >= kStructures) one.structures.clear();
      one.structures[*asked.structure] = std::shared_ptr<Structure>(new Structure{std::move(text), {}}, WithGil());
    }
  }

  // An allocator of generated code has returned a tensor. False: only Python can record that.
  template <typename Text>
  bool allocated(const Effect& effect, Structure& structure, const at::TensorBase& tensor, Text text) {
    if (PyList_GET_SIZE(open_.get()) > 0 || !is_plain(tensor) || (partial_ && is_paused())) return false;
    return closed_ || safely([&] { return recorded(effect, structure, {&tensor}, 0, text); }, true);
  }

 private:
  static constexpr size_t kStructures = 1 << 12, kLayouts = 1 << 12;  // of one operator that are remembered

  static bool all_plain(Arguments arguments) {
    return std::all_of(arguments.begin(), arguments.end(), [](const c10::IValue& value) {
      if (value.isTensor()) return !value.toTensor().defined() || is_plain(value.toTensor());
      return !value.isList() || all_plain(value.toListRef());
    });
  }

  static void to_python(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                        const ForwardedInterpreter& interpreter, Asked what) {
    AskedGuard guard(what);
    interpreter.ForwardedInterpreter::dispatch(op, stack);
  }

  static void run(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    torch::torch_dispatch_mode::StashTorchDispatchModeGuard guard;
    op.callBoxed(stack);
  }

  using Known = std::pair<std::shared_ptr<const Effect>, std::shared_ptr<Structure>>;

  Known known_of(const c10::OperatorHandle& op, const Words* key) {
    std::lock_guard lock(mutex_);
    auto known = operators_.find(&op.schema());
    if (known == operators_.end() || known->second.name != op.operator_name()) return {};
    const Operator& one = known->second;
    auto structure = key != nullptr ? one.structures.find(*key) : one.structures.end();
    return {one.effect, structure == one.structures.end() ? nullptr : structure->second};
  }

  bool is_paused() {
    py::gil_scoped_acquire gil;
    return safely([&] { return PyObject_IsTrue(attribute<"paused">(calls_).get()) != 0; }, true);
  }

  void record(const Effect& effect, Structure& structure, Arguments arguments, Arguments results) {
    Tensors tensors;
    for (int at : effect.reads) collect(arguments[at], tensors);
    const size_t reads = tensors.size();
    if (effect.training < 0 || (arguments[effect.training].isBool() && arguments[effect.training].toBool())) {
      for (int at : effect.writes) collect(arguments[at], tensors);
    }
    Tensors outputs;
    for (int at : effect.outputs) collect(results[at], outputs);
    for (const at::TensorBase* output : outputs) {
      if (!effect.check || !shared(*output, arguments)) tensors.push_back(output);
    }
    if (tensors.size() == reads) return;
    py::gil_scoped_acquire gil;
    safely([&] { return recorded(effect, structure, tensors, reads, [&] { return structure.text; }); }, true);
  }

  // True if a result lies in the storage of an argument.
  static bool shared(const at::TensorBase& output, Arguments arguments) {
    Tensors tensors;
    for (const c10::IValue& value : arguments) collect(value, tensors);
    return std::any_of(tensors.begin(), tensors.end(), [&](const at::TensorBase* tensor) {
      return output.has_storage() ? tensor->is_alias_of(output)
                                  : tensor->unsafeGetTensorImpl() == output.unsafeGetTensorImpl();
    });
  }

  template <typename Text>
  bool recorded(const Effect& effect, Structure& structure, const Tensors& tensors, size_t reads, Text text) {
    Object is_shown = checked(PyObject_CallNoArgs(shown_.get()));
    if (is_shown.get() != Py_True) return true;
    if (recorded_.segment_changed()) forget_numbers();
    const bool plain = std::all_of(tensors.begin(), tensors.end(), [](const auto* one) { return is_plain(*one); });
    Words key{static_cast<int64_t>(reads)};
    key.reserve(tensors.size() * 10 + 1);
    std::vector<Block> blocks;
    blocks.reserve(tensors.size());
    if (plain) {
      for (const at::TensorBase* tensor : tensors) {
        append_layout(*tensor, key);
        blocks.push_back(block_of(*tensor));
      }
      auto known = structure.by_layouts.find(key);
      if (known != structure.by_layouts.end() && known->second->number >= 0) {
        const auto signature = known->second;
        recorded_.append(*signature, blocks, effect.allocates);
        return true;
      }
    }
    const auto signature = by_python(effect, text(), tensors, reads);
    if (plain && signature != nullptr) {
      if (structure.by_layouts.size() >= kLayouts) structure.by_layouts.clear();
      structure.by_layouts[key] = signature;
      if (recorded_.has_segments()) remembered_.push_back(signature);
    }
    return true;
  }

  // Of a new signature, the call is recorded by Python.
  std::shared_ptr<Signature> by_python(const Effect& effect, const Object& text, const Tensors& tensors, size_t reads) {
    Object read = wrapped(tensors, 0, reads), wrote = wrapped(tensors, reads, tensors.size());
    Object known = call<"executed">(calls_, effect.object.get(), text.get(), read.get(), wrote.get());
    if (known.get() == Py_None) return nullptr;
    auto signature = std::make_shared<Signature>();
    Object name = attribute<"name">(effect.object);
    signature->number = as_long(Object::borrowed(PyTuple_GET_ITEM(known.get(), 0)));
    PyObject* metas = PyTuple_GET_ITEM(known.get(), 1);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(metas); ++i) {
      signature->writes.push_back(checked(PyTuple_Pack(2, PyTuple_GET_ITEM(metas, i), name.get())));
    }
    return signature;
  }

  static Object wrapped(const Tensors& tensors, size_t start, size_t stop) {
    Object list = checked(PyList_New(static_cast<Py_ssize_t>(stop - start)));
    for (size_t i = start; i < stop; ++i) {
      PyList_SET_ITEM(list.get(), i - start, checked(THPVariable_Wrap(*tensors[i])).release());
    }
    return list;
  }

  // Signatures have a line in each segment that refers to them.
  void forget_numbers() {
    for (auto& one : remembered_) {
      if (auto signature = one.lock()) signature->number = -1;
    }
    remembered_.clear();
  }

  // An error of the recorder ends the recording; it reaches the program only if Python's form raises it, too.
  template <typename Action>
  bool safely(Action action, bool otherwise) {
    try {
      return action();
    } catch (const PythonError&) {
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != nullptr) PyException_SetTraceback(value, trace);
    Object owned_type(type), owned_value(value), owned_trace(trace);
    Object done(PyObject_CallOneArg(failing_.get(), value));
    if (!done) {
      python_error error;
      error.persist();
      throw error;
    }
    closed_ = true;
    return otherwise;
  }

  PyObject* mode_;  // compared only
  Object calls_;
  RecordedCalls recorded_;
  Object shown_, failing_, open_;
  bool partial_ = false;
  std::atomic<bool> closed_ = false;
  std::mutex mutex_;  // of operators_, which are looked up without the GIL
  std::unordered_map<const c10::FunctionSchema*, Operator> operators_;
  std::vector<std::weak_ptr<Signature>> remembered_;
};

class ObservedInterpreter final : public ForwardedInterpreter {
 public:
  ObservedInterpreter() {
    // another thread may hold the mutex when the process is forked
    static ObservedInterpreter* const one = this;
    pthread_atfork([] { one->mutex_.lock(); }, [] { one->mutex_.unlock(); },
                   [] {
                     for (auto& observer : one->observers_) observer->close();  // the run belongs to the parent
                     one->mutex_.unlock();
                   });
  }

  void watch(std::shared_ptr<Observer> observer) {
    std::lock_guard lock(mutex_);
    if (observers_.empty()) install();
    observers_.push_back(std::move(observer));
  }

  void unwatch(const Observer* observer) {
    std::lock_guard lock(mutex_);
    std::erase_if(observers_, [&](const auto& one) { return one.get() == observer; });
    if (observers_.empty()) remove();
  }

  void dispatch(const c10::OperatorHandle& op, torch::jit::Stack* stack) const override {
    if (const auto observer = innermost()) return observer->dispatch(op, stack, *this);
    ForwardedInterpreter::dispatch(op, stack);
  }

 private:
  // The observer of the mode that receives the next operator of this thread; null: another mode, or none.
  std::shared_ptr<Observer> innermost() const {
    using c10::impl::TorchDispatchModeTLS;
    const int64_t modes = TorchDispatchModeTLS::stack_len();
    if (modes == 0) return nullptr;
    const PyObject* mode = TorchDispatchModeTLS::get_stack_at(modes - 1)->ptr(getPyInterpreter());
    std::lock_guard lock(mutex_);
    for (const auto& one : observers_) {
      if (one->mode() == mode) return one;
    }
    return nullptr;
  }

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Observer>> observers_;
};

ObservedInterpreter& interpreter() {
  static auto* one = new ObservedInterpreter();  // never deleted: a thread may be in it
  return *one;
}

// A function that replaces an allocator of generated code.
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
    auto packed = [&] {
      Object all = checked(PyTuple_New(count));
      for (Py_ssize_t i = 0; i < count; ++i)
        PyTuple_SET_ITEM(all.get(), i, Object::borrowed(arguments[i]).release());
      return all;
    };
    try {
      const bool recorded =
          THPVariable_CheckExact(made.get()) &&
          observer->allocated(effect, structure, THPVariable_Unpack(made.get()),
                              [&] { return checked(PyObject_CallObject(text.get(), packed().get())); });
      if (!recorded) checked(PyObject_CallFunctionObjArgs(python.get(), packed().get(), made.get(), nullptr));
    } catch (python_error& error) {
      error.restore();
      return nullptr;
    } catch (const PythonError&) {
      return nullptr;
    }
    return made.release();
  }
};

struct AllocatorObject {
  PyObject_HEAD
  vectorcallfunc call;
  Allocator* allocator;
  PyObject* dict;  // functools.wraps sets attributes
};

PyObject* call_allocator(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names) {
  if (names != nullptr && PyTuple_GET_SIZE(names) > 0) {
    PyErr_SetString(PyExc_TypeError, "an allocator of generated code takes no keyword arguments");
    return nullptr;
  }
  return reinterpret_cast<AllocatorObject*>(self)->allocator->call(arguments, PyVectorcall_NARGS(flags));
}

void released(PyObject* object) {
  auto* self = reinterpret_cast<AllocatorObject*>(object);
  PyTypeObject* type = Py_TYPE(object);
  delete self->allocator;
  Py_XDECREF(self->dict);
  type->tp_free(object);
  Py_DECREF(type);
}

PyTypeObject* allocator_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(AllocatorObject, call), READONLY, nullptr},
      {"__dictoffset__", T_PYSSIZET, offsetof(AllocatorObject, dict), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyGetSetDef attributes[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                                     {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(released)},
                                {Py_tp_members, members},
                                {Py_tp_getset, attributes},
                                {0, nullptr}};
  static PyType_Spec spec = {"tracing.native.operator_observer.Allocator", sizeof(AllocatorObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  static PyObject* type = checked(PyType_FromSpec(&spec)).release();
  return reinterpret_cast<PyTypeObject*>(type);
}

py::object allocator(std::shared_ptr<Observer> observer, const py::object& allocate, const py::object& effect,
                     const py::object& text, const py::object& python) {
  PyTypeObject* type = allocator_type();
  auto self = py::reinterpret_steal<py::object>(checked(type->tp_alloc(type, 0)).release());
  Effect known{Effect::RECORDED, Object::borrowed(effect.ptr()), {}, {}, {}, -1, false, true};
  auto* object = reinterpret_cast<AllocatorObject*>(self.ptr());
  object->call = call_allocator;
  object->allocator = new Allocator{std::move(observer), std::move(known), Object::borrowed(allocate.ptr()),
                                    Object::borrowed(text.ptr()), Object::borrowed(python.ptr()), {}};
  return self;
}

void learn(const py::object& effect, int kind, std::vector<int> reads, std::vector<int> writes,
           std::vector<int> outputs, int training, bool check, bool allocates, const py::object& text) {
  Effect known{static_cast<Effect::Kind>(kind), Object::borrowed(effect.ptr()), std::move(reads), std::move(writes),
               std::move(outputs), training, check, allocates};
  asked.observer->learn(std::move(known), Object::borrowed(text.ptr()));
  asked = {};
}

}  // namespace

PYBIND11_MODULE(operator_observer, module) {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const PythonError&) {  // Python's exception is set
    }
  });
  py::class_<Observer, std::shared_ptr<Observer>>(module, "Observer")
      .def(py::init([](const py::object& mode, const py::object& calls, const py::object& shown) {
        std::shared_ptr<Observer> observer(new Observer(mode.ptr(), calls.ptr(), shown.ptr()), WithGil());
        interpreter().watch(observer);
        return observer;
      }))
      .def("close", [](Observer& observer) {
        observer.close();
        interpreter().unwatch(&observer);
      });
  module.def("allocator", &allocator);
  // True if an observer asks what this operator, which Python receives now, reads and writes.
  module.def("asks", [](const std::string& name) {
    return asked.observer != nullptr && c10::toString(asked.op->operator_name()) == name;
  });
  module.def("learn", &learn);
}
