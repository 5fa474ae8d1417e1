// Runs the operators that reach one dispatch mode, and records those that are known; Python records the others.
#pragma once

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/torch_dispatch_mode.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "hidden_launches.h"
#include "known_operators.h"
#include "operator_digests.h"
#include "python_interpreter.h"
#include "recorded_calls.h"
#include "recording_lock.h"

class Observer;

// The call that is passed on to Python, and that is not known.
struct Asked {
  Observer* observer = nullptr;
  const c10::OperatorHandle* op = nullptr;
  const Key* arguments = nullptr;  // null: only Python knows their text
  size_t numbers = 0;              // of these arguments
};
inline thread_local Asked asked;

class AskedGuard {
 public:
  explicit AskedGuard(Asked now) : before_(asked) { asked = now; }
  ~AskedGuard() { asked = before_; }

 private:
  Asked before_;
};

class Observer {
 public:
  using Arguments = c10::ArrayRef<c10::IValue>;

  // mode, calls, thread: tracing's Operators, OperatorCalls, and the state of the thread in hooks
  Observer(PyObject* mode, PyObject* calls, PyObject* thread)
      : mode_(mode), calls_(Object::borrowed(calls)), recorded_(calls), thread_(Object::borrowed(thread)) {
    failing_ = attribute<"failing">(Object::borrowed(mode));
    open_ = attribute<"open_graphs">(attribute<"captured">(calls_));
    partial_ = attribute<"partial">(calls_).get() == Py_True;
    const Object digests = attribute<"digests">(calls_);
    if (digests.get() != Py_None) digests_ = std::make_unique<OperatorDigests>(digests);
  }
  PyObject* mode() const { return mode_; }
  void close() { closed_ = true; }

  void dispatch(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                const ForwardedInterpreter& interpreter) {
    const auto& schema = op.schema();
    const size_t count = schema.arguments().size();
    const Arguments arguments(stack->data() + stack->size() - count, count);
    if (!all_plain(arguments)) return to_python(op, stack, interpreter, {});
    const By by = recorded_by();
    if (by == By::NOBODY) return run(op, stack);
    Key key;
    Numbers numbers;
    const bool known = append_arguments(schema, arguments, key, numbers);
    const auto [effect, structure] = operators_.of(op, known ? &key : nullptr);
    if (effect != nullptr && effect->kind == Effect::IGNORED) return run(op, stack);
    if (effect != nullptr && effect->kind == Effect::PYTHON) return to_python(op, stack, interpreter, {});
    if (by == By::PYTHON) return to_python(op, stack, interpreter, {});
    if (structure == nullptr) {
      return to_python(op, stack, interpreter, {this, &op, known ? &key : nullptr, numbers.size()});
    }
    const c10::SmallVector<c10::IValue, 8> held(arguments.begin(), arguments.end());
    Kept before(digests_ && !effect->allocates ? digested(*effect, held) : Object());
    run(op, stack);
    if (closed_) return;
    const size_t returned = schema.returns().size();
    const Arguments results(stack->data() + stack->size() - returned, returned);
    record(*effect, *structure, held, numbers, results, before);
  }

  // What Python knows of the call that was passed on.
  void learn(Effect effect, ArgumentsText text) {
    const Key* arguments = text.numbers() == asked.numbers ? asked.arguments : nullptr;
    operators_.learn(*asked.op, arguments, std::move(effect), std::move(text));
  }

  // An allocator of generated code has returned a tensor. False: only Python can record that.
  template <typename Text>
  bool allocated(const Effect& effect, Structure& structure, const at::TensorBase& tensor, Text text) {
    const By by = recorded_by();
    if (by != By::THIS || !is_plain(tensor)) return by == By::NOBODY;
    return safely([&] { return recorded(effect, structure, {&tensor}, 0, {}, text, {}); }, true);
  }

 private:
  static constexpr size_t kLayouts = 1 << 12;  // of equal arguments that are remembered

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

  enum class By { NOBODY, PYTHON, THIS };

  // Python records while a CUDA graph is captured: a step that is written may replay it.
  By recorded_by() {
    if (closed_) return By::NOBODY;
    if (PyList_GET_SIZE(open_.get()) > 0) return By::PYTHON;
    if (!partial_) return By::THIS;
    pybind11::gil_scoped_acquire gil;
    return safely([&] {
      if (attribute<"paused">(calls_).get() == Py_False) return By::THIS;
      return call<"passes_over">(calls_).get() == Py_True ? By::NOBODY : By::PYTHON;
    }, By::NOBODY);
  }

  // The digests of what an operator is about to read; null: it is not recorded.
  Object digested(const Effect& effect, Arguments arguments) {
    Tensors reads;
    for (int at : effect.reads) collect(arguments[at], reads);
    pybind11::gil_scoped_acquire gil;
    Object taken;
    safely([&] {
      if (as_long(hidden_of(thread_.get())) != 0) return true;
      RecordingLock lock(recorded_.lock());
      taken = digests_->take(effect.object, reads);
      return true;
    }, true);
    return taken;
  }

  void record(const Effect& effect, Structure& structure, Arguments arguments, const Numbers& numbers,
              Arguments results, Kept& digests) {
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
    pybind11::gil_scoped_acquire gil;
    const Object before = digests.released();
    auto text = [&] { return as_python(structure.text.with(numbers)); };
    safely([&] { return recorded(effect, structure, tensors, reads, numbers, text, before); }, true);
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

  static Object as_python(const std::string& text) {
    return checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  }

  // before: the digests of what it read; null: it has no digests
  template <typename Text>
  bool recorded(const Effect& effect, Structure& structure, const Tensors& tensors, size_t reads,
                const Numbers& numbers, Text text, const Object& before) {
    if (as_long(hidden_of(thread_.get())) != 0) return true;
    RecordingLock lock(recorded_.lock());
    const bool plain = std::all_of(tensors.begin(), tensors.end(), [](const auto* one) { return is_plain(*one); });
    Object after;
    if (before && plain) after = digests_->take(effect.object, TensorsView(tensors).slice(reads));
    Key layouts{static_cast<int64_t>(reads)};
    Blocks blocks;
    if (plain) {
      for (const at::TensorBase* tensor : tensors) {
        append_layout(*tensor, layouts);
        blocks.push_back(block_of(*tensor));
      }
      auto known = structure.by_layouts.find(view(layouts));
      if (known != structure.by_layouts.end()) {
        const auto signature = known->second;
        recorded_.refresh(*signature);  // after `take`, which may have begun a segment
        const bool alike = numbers == signature->numbers;
        const std::string arguments = alike ? "" : structure.text.with(numbers);
        const long index = recorded_.append(*signature, blocks, effect.allocates, arguments);
        if (before) digests_->expect(index, before, after);
        return true;
      }
    }
    const auto signature = by_python(effect, text(), tensors, reads, before, after);
    if (signature != nullptr) signature->numbers = numbers;
    if (plain && signature != nullptr) remember(structure, layouts, signature);
    return true;
  }

  // Of a new signature, the call is recorded by Python.
  std::shared_ptr<Signature> by_python(const Effect& effect, const Object& text, TensorsView tensors, size_t reads,
                                       const Object& before, const Object& after) {
    const Object read = wrapped(tensors.slice(0, reads)), wrote = wrapped(tensors.slice(reads));
    const Object known = call<"executed">(calls_, effect.object.get(), text.get(), read.get(), wrote.get(),
                                          before ? before.get() : Py_None, after ? after.get() : Py_None);
    if (known.get() == Py_None) return nullptr;
    auto signature = std::make_shared<Signature>();
    Object name = attribute<"name">(effect.object);
    signature->known = Object::borrowed(PyTuple_GET_ITEM(known.get(), 0));
    signature->number = as_long(attribute<"number">(signature->known));
    signature->segment = as_long(attribute<"segment">(signature->known));
    PyObject* metas = PyTuple_GET_ITEM(known.get(), 1);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(metas); ++i) {
      const Object write = checked(PyTuple_Pack(2, PyTuple_GET_ITEM(metas, i), name.get()));
      signature->writes.push_back(checked(PyTuple_Pack(1, write.get())));
    }
    return signature;
  }

  void remember(Structure& structure, const Key& layouts, const std::shared_ptr<Signature>& signature) {
    if (structure.by_layouts.size() >= kLayouts) structure.by_layouts.clear();
    structure.by_layouts[words(layouts)] = signature;
  }

  // An error of the recorder ends the recording; it reaches the program only if Python's form raises it, too.
  template <typename Action, typename Result>
  Result safely(Action action, Result otherwise) {
    try {
      return action();
    } catch (const PythonError&) {
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    if (is_recorders()) {
      const Object error = raised();
      if (Object(PyObject_CallOneArg(failing_.get(), error.get()))) {
        closed_ = true;
        return otherwise;
      }
    }
    python_error error;
    error.persist();
    throw error;
  }

  PyObject* mode_;  // compared only
  Object calls_;
  RecordedCalls recorded_;
  Object thread_, failing_, open_;
  std::unique_ptr<OperatorDigests> digests_;  // null: none are taken
  bool partial_ = false;
  std::atomic<bool> closed_ = false;
  KnownOperators operators_;
};
