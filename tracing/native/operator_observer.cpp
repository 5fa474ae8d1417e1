// The compiled form of `Operators` (tracing/operators/dispatch.py) for operators whose arguments are known.
//
// Torch calls a dispatch mode by `PyInterpreterVTable::dispatch`. This file replaces that method: if the innermost
// mode is one that an `Observer` watches, the observer receives the operator. Operators, arguments and tensors that
// are not known yet, or that need Python, are passed on to the mode itself, which then teaches the observer. So the
// two forms see the same operators, on the same threads.
#include <pthread.h>

#include <memory>
#include <mutex>

#include "generated_allocators.h"
#include "held_lines.h"
#include "observer.h"
#include "python_interpreter.h"

namespace {

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

void learn(const py::object& effect, int kind, std::vector<int> reads, std::vector<int> writes,
           std::vector<int> outputs, int training, bool check, bool allocates, const py::object& text) {
  Effect known{static_cast<Effect::Kind>(kind), Object::borrowed(effect.ptr()), std::move(reads), std::move(writes),
               std::move(outputs), training, check, allocates};
  asked.observer->learn(std::move(known), ArgumentsText(Object::borrowed(text.ptr())));
  asked = {};
}

// The digest of a tensor on the host; None: only Python can read it.
py::object digest(const py::object& tensor) {
  const at::TensorBase& one = THPVariable_Unpack(tensor.ptr());
  if (!is_plain(one)) return py::none();
  const Object list = host_digests({&one});
  return list ? py::object(py::reinterpret_borrow<py::object>(PyList_GET_ITEM(list.get(), 0))) : py::none();
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
      .def(py::init([](const py::object& mode, const py::object& calls, const py::object& thread) {
        std::shared_ptr<Observer> observer(new Observer(mode.ptr(), calls.ptr(), thread.ptr()), WithGil());
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
  // A fatal signal appends the lines to the file, until they are released.
  module.def("keep", [](const py::object& lines, const std::string& path) { HeldLines::keep(lines.ptr(), path.c_str()); });
  module.def("release", [](const py::object& lines) { HeldLines::release(lines.ptr()); });
  module.def("digest", &digest);
}
