// Torch's interface to Python, with another `dispatch`: it is what calls `__torch_dispatch__` of modes.
#pragma once

#include <torch/csrc/PyInterpreter.h>

// Passes all calls on to the methods of Python itself. A torch that adds a method does not compile this file:
// then the recorder's Python form runs.
class ForwardedInterpreter : public c10::impl::PyInterpreterVTable {
 public:
  // The interpreter, and its methods before `installed`.
  ForwardedInterpreter() : interpreter_(getPyInterpreter()), python_(interpreter_->vtable_) {}

  void install() { interpreter_->vtable_ = this; }
  void remove() {
    if (interpreter_->vtable_ == this) interpreter_->vtable_ = python_;
  }

  using Impl = const c10::TensorImpl*;
  std::string name() const override { return python_->name(); }
  void incref(PyObject* object) const override { python_->incref(object); }
  void decref(PyObject* object) const override { python_->decref(object); }
  bool try_incref(const c10::impl::PyObjectSlot& slot) const override { return python_->try_incref(slot); }
  size_t refcnt(PyObject* object) const override { return python_->refcnt(object); }
  c10::intrusive_ptr<c10::TensorImpl> detach(Impl self) const override { return python_->detach(self); }
  void dispatch(const c10::OperatorHandle& op, torch::jit::Stack* stack) const override {
    python_->dispatch(op, stack);
  }
  void reportErrorCallback(PyObject* callback, c10::DispatchKey key) const override {
    python_->reportErrorCallback(callback, key);
  }
  void python_op_registration_trampoline(const c10::OperatorHandle& op, c10::DispatchKey key,
                                         c10::DispatchKeySet keys, torch::jit::Stack* stack, bool with_keyset,
                                         bool with_op) const override {
    python_->python_op_registration_trampoline(op, key, keys, stack, with_keyset, with_op);
  }
  void throw_abstract_impl_not_imported_error(std::string name, const char* module,
                                              const char* context) const override {
    python_->throw_abstract_impl_not_imported_error(name, module, context);
  }
  void python_dispatcher(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                         torch::jit::Stack* stack) const override {
    python_->python_dispatcher(op, keys, stack);
  }
  bool is_contiguous(Impl self, at::MemoryFormat format) const override {
    return python_->is_contiguous(self, format);
  }
  c10::SymBool sym_is_contiguous(Impl self, at::MemoryFormat format) const override {
    return python_->sym_is_contiguous(self, format);
  }
  bool is_strides_like(Impl self, at::MemoryFormat format) const override {
    return python_->is_strides_like(self, format);
  }
  bool is_non_overlapping_and_dense(Impl self) const override {
    return python_->is_non_overlapping_and_dense(self);
  }
  c10::Device device(Impl self) const override { return python_->device(self); }
  int64_t dim(Impl self) const override { return python_->dim(self); }
  c10::IntArrayRef strides(Impl self) const override { return python_->strides(self); }
  c10::IntArrayRef sizes(Impl self) const override { return python_->sizes(self); }
  c10::SymIntArrayRef sym_sizes(Impl self) const override { return python_->sym_sizes(self); }
  c10::Layout layout(Impl self) const override { return python_->layout(self); }
  int64_t numel(Impl self) const override { return python_->numel(self); }
  c10::SymInt sym_numel(Impl self) const override { return python_->sym_numel(self); }
  c10::SymIntArrayRef sym_strides(Impl self) const override { return python_->sym_strides(self); }
  c10::SymInt sym_storage_offset(Impl self) const override { return python_->sym_storage_offset(self); }
  using Type = c10::DeviceType;
  void trace_gpu_event_creation(Type type, uintptr_t event) const override {
    python_->trace_gpu_event_creation(type, event);
  }
  void trace_gpu_event_deletion(Type type, uintptr_t event) const override {
    python_->trace_gpu_event_deletion(type, event);
  }
  void trace_gpu_event_record(Type type, uintptr_t event, uintptr_t stream) const override {
    python_->trace_gpu_event_record(type, event, stream);
  }
  void trace_gpu_event_wait(Type type, uintptr_t event, uintptr_t stream) const override {
    python_->trace_gpu_event_wait(type, event, stream);
  }
  void trace_gpu_memory_allocation(Type type, uintptr_t address) const override {
    python_->trace_gpu_memory_allocation(type, address);
  }
  void trace_gpu_memory_deallocation(Type type, uintptr_t address) const override {
    python_->trace_gpu_memory_deallocation(type, address);
  }
  void trace_gpu_stream_creation(Type type, uintptr_t stream) const override {
    python_->trace_gpu_stream_creation(type, stream);
  }
  void trace_gpu_device_synchronization(Type type) const override {
    python_->trace_gpu_device_synchronization(type);
  }
  void trace_gpu_stream_synchronization(Type type, uintptr_t stream) const override {
    python_->trace_gpu_stream_synchronization(type, stream);
  }
  void trace_gpu_event_synchronization(Type type, uintptr_t event) const override {
    python_->trace_gpu_event_synchronization(type, event);
  }
  void reset_backward_hooks(Impl self) const override { python_->reset_backward_hooks(self); }

 private:
  c10::impl::PyInterpreter* interpreter_;
  const c10::impl::PyInterpreterVTable* python_;
};
