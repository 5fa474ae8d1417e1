// What is known of operators: what each reads and writes, and the calls whose arguments were recorded before.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "operator_keys.h"
#include "python_objects.h"
#include "recorded_calls.h"

// What an operator reads and writes, by position in its schema: tracing/operators/effects.py's Effect.
struct Effect {
  enum Kind { PYTHON, IGNORED, RECORDED } kind = PYTHON;
  Object object;
  std::vector<int> reads, writes, outputs;
  int training = -1;  // position of the flag without which no argument is written
  bool check = false, allocates = false;
};

// The calls of an operator whose arguments are equal, floating-point numbers excepted; used with the GIL held.
struct Structure {
  ArgumentsText text;
  std::unordered_map<Words, std::shared_ptr<Signature>, WordsHash, WordsEqual> by_layouts;
};

// Deletes what holds Python objects, on any thread.
struct WithGil {
  template <typename T>
  void operator()(T* one) const {
    pybind11::gil_scoped_acquire gil;
    delete one;
  }
};

// Its methods need no GIL.
class KnownOperators {
 public:
  struct Known {
    std::shared_ptr<const Effect> effect;  // null: the operator is not known
    std::shared_ptr<Structure> structure;  // null: the call is not known
  };

  // arguments: null, if only Python knows their text
  Known of(const c10::OperatorHandle& op, const Key* arguments) {
    std::lock_guard lock(mutex_);
    auto known = operators_.find(&op.schema());
    if (known == operators_.end() || known->second.name != op.operator_name()) return {};
    const Operator& one = known->second;
    auto structure = arguments != nullptr ? one.structures.find(view(*arguments)) : one.structures.end();
    return {one.effect, structure == one.structures.end() ? nullptr : structure->second};
  }

  // text: of its arguments
  void learn(const c10::OperatorHandle& op, const Key* arguments, Effect effect, ArgumentsText text) {
    std::lock_guard lock(mutex_);
    Operator& one = operators_[&op.schema()];
    if (one.effect == nullptr || one.name != op.operator_name()) {
      one = {op.operator_name(), std::shared_ptr<Effect>(new Effect(std::move(effect)), WithGil()), {}};
    }
    if (arguments == nullptr || one.effect->kind != Effect::RECORDED) return;
    if (one.structures.size() >= kStructures) one.structures.clear();
    one.structures[words(*arguments)] = std::shared_ptr<Structure>(new Structure{std::move(text), {}}, WithGil());
  }

 private:
  static constexpr size_t kStructures = 1 << 12;  // of one operator that are remembered

  struct Operator {
    c10::OperatorName name{"", ""};  // its schema's address may become that of another operator
    std::shared_ptr<const Effect> effect;
    std::unordered_map<Words, std::shared_ptr<Structure>, WordsHash, WordsEqual> structures;
  };

  std::mutex mutex_;
  std::unordered_map<const c10::FunctionSchema*, Operator> operators_;
};
