// RUN: triton-opt %s -cse -canonicalize --mlir-print-ir-after-all 2>&1 >/dev/null | FileCheck %s

// CHECK: IR Dump After cse
// CHECK: arith.addi
// CHECK: IR Dump After canonicalize
// CHECK-NOT: arith.addi
tt.func @f(%a: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %0 = arith.addi %a, %c0 : i32
  tt.return %0 : i32
}
