// Two passes, run as MLIR runs its own: what a debugger reads of a pass is here as it is there.
#include <cstddef>

namespace mlir {
struct StringRef { const char *data; size_t length; };
struct Operation { int number; };
struct AnalysisManager { void *parent; };

struct Pass {
  virtual ~Pass() = default;
  virtual StringRef getName() const = 0;
  virtual void getDependentDialects(int &) const {}
  virtual StringRef getArgument() const { return {"", 0}; }
  virtual StringRef getDescription() const { return {"", 0}; }
  virtual void runOnOperation() = 0;
};

namespace detail {
struct OpToOpPassAdaptor {
  static bool run(Pass *, Operation *, AnalysisManager, bool, unsigned);
};
__attribute__((noinline)) bool OpToOpPassAdaptor::run(Pass *pass, Operation *, AnalysisManager, bool, unsigned) {
  pass->runOnOperation();
  return true;
}
} // namespace detail
} // namespace mlir

using namespace mlir;
volatile int ran = 0;

struct First : Pass {
  StringRef getName() const override { return {"First", 5}; }
  StringRef getArgument() const override { return {"first-pass", 10}; }
  void runOnOperation() override { ran = ran + 1; }
};

struct Second : First {
  StringRef getArgument() const override { return {"second-pass", 11}; }
  void runOnOperation() override { ran = ran + 2; }
};

int main() {
  First first;
  Second second;
  Operation operation{0};
  Pass *passes[] = {&first, &second};
  for (Pass *pass : passes)
    detail::OpToOpPassAdaptor::run(pass, &operation, {nullptr}, false, 0);
}
