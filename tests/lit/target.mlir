// RUN: triton-opt %s -split-input-file -tritongpu-accelerate-matmul | FileCheck %s
// What the pass takes from the module: the target decides which instruction a dot becomes.

// CHECK: #ttg.nvidia_mma<{versionMajor = 2,
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#b = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @dot(%a: tensor<64x64xf16, #a>, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
    %0 = tt.dot %a, %b, %c : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #blocked>
    tt.return %0 : tensor<64x64xf32, #blocked>
  }
}

// -----

// CHECK: #ttg.nvidia_mma<{versionMajor = 3,
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#b = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @dot(%a: tensor<64x64xf16, #a>, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked> {
    %0 = tt.dot %a, %b, %c : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #blocked>
    tt.return %0 : tensor<64x64xf32, #blocked>
  }
}
