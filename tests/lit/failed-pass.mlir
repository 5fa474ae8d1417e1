// RUN: not triton-opt %s -convert-triton-gpu-to-llvm -cse 2>&1 | FileCheck %s --implicit-check-not=reproducer

// CHECK: failed-pass.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: {{.*}}number of warps
tt.func @no_target() {
  tt.return
}
