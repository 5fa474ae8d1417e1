// RUN: triton-opt %s -split-input-file -verify-diagnostics

tt.func @wrong_size() {
  // expected-error @below {{number of elements in returned tensor, 128, must match size of range [0, 12)}}
  %0 = tt.make_range {end = 12 : i32, start = 0 : i32} : tensor<128xi32>
  tt.return
}

// -----

tt.func @defined_twice() {
  // expected-note @+1 {{previously defined here}}
  %0 = arith.constant 1 : i32
  // expected-error-re @+1 {{redefinition of SSA value {{.*}}0}}
  %0 = arith.constant 2 : i32
  tt.return
}
