// RUN: triton-opt %s -split-input-file -canonicalize | FileCheck %s

// CHECK-LABEL: @f
// CHECK-NEXT: tt.return
tt.func @f() {
  %0 = arith.constant 1 : i32
  tt.return
}

// -----

// CHECK-LABEL: @g
tt.func @g() {
  tt.return
}
