// Takes the digests of what operators read and write: the compiled form of OperatorDigestQueue in
// tracing/record/operator_digests.py for tensors on the host, and for those on the current GPU whose layouts are known.
// Python takes the others.
#pragma once

#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "digests.h"
#include "host_tensors.h"
#include "operator_keys.h"
#include "python_objects.h"

// Tensors as Python's objects.
inline Object wrapped(TensorsView tensors) {
  Object list = checked(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyList_SET_ITEM(list.get(), i, checked(THPVariable_Wrap(*tensors[i])).release());
  }
  return list;
}

// The digest launches for tensors of equal layouts on one stream, whatever their addresses.
struct DigestPlan {
  Object kept;                  // holds the tables that the launches read
  std::vector<long> positions;  // of the tensors, in the order of the launches
  std::vector<long> misaligned;  // by that order: a tensor whose address has one of these bits is copied first
  LaunchDigests launches;

  // plan: of OperatorDigestQueue.learned: (DigestedTensors, positions, misaligned, StreamDigests.plan)
  DigestPlan(const Object& queue, PyObject* plan) {
    PyObject *side, *order, *masks, *calls;
    if (!PyArg_ParseTuple(plan, "OO!O!O!", &side, &PyList_Type, &order, &PyList_Type, &masks, &PyTuple_Type, &calls))
      throw PythonError();
    kept = Object::borrowed(side);
    positions = longs(order);
    misaligned = longs(masks);
    launches = LaunchDigests(queue, calls);
  }

 private:
  static std::vector<long> longs(PyObject* list) {
    std::vector<long> values;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
      values.push_back(as_long(Object::borrowed(PyList_GET_ITEM(list, i))));
    return values;
  }
};

// All methods are called with the GIL and the lock of the recording held, and throw PythonError.
class OperatorDigests {
 public:
  // queue: a tracing.record.operator_digests.OperatorDigestQueue
  explicit OperatorDigests(const Object& queue)
      : queue_(queue),
        capturing_(attribute<"capturing">(queue)),
        current_device_(attribute<"current_device">(queue)),
        current_stream_(attribute<"current_stream">(queue)),
        computed_(attribute<"computed">(queue)),
        expected_(attribute<"expected">(queue)) {
    const char* type = PyUnicode_AsUTF8(attribute<"device_type">(queue).get());
    if (type == nullptr) throw PythonError();
    type_ = c10::Device(std::string(type)).type();
  }

  // A list with the digests of tensors as they are now; None for those that a GPU computes, which arrive later.
  Object take(const Object& effect, TensorsView tensors) {
    if (tensors.empty()) return checked(PyList_New(0));
    if (type_ != c10::DeviceType::CPU) {
      if (Object digests = host_digests(tensors)) return digests;
    }
    if (!readable(tensors)) return learned(effect, tensors, nullptr);
    const Key key = layouts(tensors);
    const auto known = plans_.find(view(key));
    const std::shared_ptr<const DigestPlan> plan = known == plans_.end() ? nullptr : known->second;
    Addresses addresses;
    if (plan && prepared() && aligned(*plan, tensors, addresses)) return launched(*plan, addresses);
    return learned(effect, tensors, plan ? nullptr : &key);
  }

  // Write the digests of an operator when they have arrived.
  void expect(long index, const Object& before, const Object& after) {
    const Object number = checked(PyLong_FromLong(index));
    const Object one = checked(PyTuple_Pack(4, number.get(), before.get(), after.get(), Py_None));
    call<"append">(expected_, one.get());
    if (!is_pending(before) && !is_pending(after)) call<"write_hidden">(queue_);
  }

 private:
  using Addresses = c10::SmallVector<uint64_t, 16>;
  static constexpr size_t kPlans = 1 << 12;  // that are remembered

  // True if tensors are on the current GPU, and have their memory.
  bool readable(TensorsView tensors) const {
    const c10::Device device = tensors[0]->device();
    const bool plain = std::all_of(tensors.begin(), tensors.end(), [&](const at::TensorBase* tensor) {
      const bool lazy = tensor->is_conj() || tensor->is_neg() || tensor->_is_zerotensor();
      const bool freed = tensor->storage().nbytes() == 0 && tensor->numel() != 0;
      return tensor->device() == device && !lazy && !freed;
    });
    if (!plain || device.type() != type_) return false;
    if (as_long(checked(PyObject_CallNoArgs(current_device_.get()))) != index_of(device)) return false;
    return checked(PyObject_CallNoArgs(capturing_.get())).get() == Py_False;
  }

  // True if Python has launched digests on this thread: the driver has a context then.
  static bool& prepared() {
    thread_local bool done = false;
    return done;
  }

  static long index_of(c10::Device device) { return std::max<long>(0, device.index()); }

  Key layouts(TensorsView tensors) const {
    const Object device = checked(PyLong_FromLong(index_of(tensors[0]->device())));
    const Object stream = checked(PyObject_CallOneArg(current_stream_.get(), device.get()));
    Key key{static_cast<int64_t>(PyLong_AsUnsignedLongLongMask(stream.get()))};
    if (PyErr_Occurred()) throw PythonError();
    for (const at::TensorBase* tensor : tensors) append_layout(*tensor, key);
    return key;
  }

  static bool aligned(const DigestPlan& plan, TensorsView tensors, Addresses& addresses) {
    bool readable = true;
    for (size_t i = 0; i < plan.positions.size(); ++i) {
      addresses.push_back(reinterpret_cast<uint64_t>(tensors[plan.positions[i]]->const_data_ptr()));
      readable = readable && (addresses.back() & static_cast<uint64_t>(plan.misaligned[i])) == 0;
    }
    return readable;
  }

  Object launched(const DigestPlan& plan, const Addresses& addresses) {
    const LaunchDigests::Slots slots = plan.launches.before(addresses.data());
    const long number = add<"count">(queue_, 1) - 1;
    Object taken = checked(PyList_New(static_cast<Py_ssize_t>(addresses.size())));
    for (size_t i = 0; i < addresses.size(); ++i)
      PyList_SET_ITEM(taken.get(), i, Object::borrowed(Py_None).release());
    checked(PyDict_SetItem(computed_.get(), checked(PyLong_FromLong(number)).get(), taken.get()));
    plan.launches.after(slots, number);
    return taken;
  }

  // Python takes the digests. key: of the tensors; null: their plan is known, or there is none
  Object learned(const Object& effect, TensorsView tensors, const Key* key) {
    const Object list = wrapped(tensors);
    const Object both = call<"learned">(queue_, effect.get(), list.get());
    PyObject* plan = PyTuple_GET_ITEM(both.get(), 1);
    prepared() = prepared() || plan != Py_None;
    if (key != nullptr && plan != Py_None) {
      if (plans_.size() >= kPlans) plans_.clear();
      plans_[words(*key)] = std::make_shared<const DigestPlan>(queue_, plan);
    }
    return Object::borrowed(PyTuple_GET_ITEM(both.get(), 0));
  }

  static bool is_pending(const Object& digests) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(digests.get()); ++i) {
      if (PyList_GET_ITEM(digests.get(), i) == Py_None) return true;
    }
    return false;
  }

  Object queue_, capturing_, current_device_, current_stream_, computed_, expected_;
  c10::DeviceType type_;
  std::unordered_map<Words, std::shared_ptr<const DigestPlan>, WordsHash, WordsEqual> plans_;
};
