// RUN: triton-opt %s | mlir-translate --mlir-to-llvmir | FileCheck %s
// CHECK: nothing, this file is read for its first line
