// RUN: triton-opt %s --pass-pipeline='builtin.module(tt.func(cse),canonicalize{max-iterations=10 top-down=true})' | FileCheck %s

// CHECK-LABEL: @f
// CHECK: %[[SUM:.+]] = arith.addi %arg0, %arg1
// CHECK-NEXT: tt.return %[[SUM]], %[[SUM]]
tt.func @f(%a: i32, %b: i32) -> (i32, i32) {
  %0 = arith.addi %a, %b : i32
  %1 = arith.addi %a, %b : i32
  tt.return %0, %1 : i32, i32
}
