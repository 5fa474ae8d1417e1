// REQUIRES: symbols
// RUN: triton-opt %s -allow-unregistered-dialect -mlir-print-local-scope -mlir-print-debuginfo | FileCheck %s

// CHECK-LABEL: @f
// CHECK: "other.operation"() : () -> () loc("{{.*}}unregistered.mlir":[[#@LINE+2]]:3)
tt.func @f() {
  "other.operation"() : () -> ()
  tt.return
}
