// RUN: not triton-opt %s -verify-diagnostics 2>&1 | FileCheck %s

// CHECK: diagnostics-missing.mlir:[[#@LINE+2]]: error: expected warning "this never comes" was not produced
// CHECK: diagnostics-missing.mlir:[[#@LINE+3]]: error: unexpected error: {{.*}}redefinition of SSA value
// expected-warning @+1 {{this never comes}}
%0 = arith.constant 1 : i32
%0 = arith.constant 2 : i32
