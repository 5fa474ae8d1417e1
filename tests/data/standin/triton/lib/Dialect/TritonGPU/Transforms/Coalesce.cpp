namespace mlir::triton::gpu {
struct Pass {
  virtual void runOnOperation() = 0;
};
struct CoalescePass : Pass {
  int seen = 0;
  void runOnOperation() override {
    // The first statement is where a debugger is expected to stop.
    seen += 1;
  }
};
} // namespace mlir::triton::gpu

extern "C" int coalesce() {
  mlir::triton::gpu::CoalescePass pass;
  static_cast<mlir::triton::gpu::Pass &>(pass).runOnOperation();
  return pass.seen;
}
