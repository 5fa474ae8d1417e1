// RUN: triton-opt %s -split-input-file -tritongpu-accelerate-matmul | FileCheck %s
// tritongpu-accelerate-matmul of matmul for cuda:80, pass 14, Triton 3.8.0

// CHECK: #[[$BLOCKED:.+]] = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK: #[[$MMA:.+]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-LABEL: tt.func public @matmul(
// CHECK: %[[TOTAL_38:[^ ]+]] = ttg.convert_layout %{{[^ ]+}} : tensor<64x64xf32, #[[$BLOCKED]]> -> tensor<64x64xf32, #[[$MMA]]>
// CHECK-NEXT: %[[TOTAL_39:[^ ]+]] = ttg.convert_layout %{{[^ ]+}} : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #[[$BLOCKED]]}>> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #[[$MMA]], kWidth = 2}>>
// CHECK-NEXT: %[[TOTAL_40:[^ ]+]] = ttg.convert_layout %{{[^ ]+}} : tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #[[$BLOCKED]]}>> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #[[$MMA]], kWidth = 2}>>
// CHECK-NEXT: %[[TOTAL_41:[^ ]+]] = tt.dot %[[TOTAL_39]], %[[TOTAL_40]], %[[TOTAL_38]], inputPrecision = tf32 : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #[[$MMA]], kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #[[$MMA]], kWidth = 2}>> -> tensor<64x64xf32, #[[$MMA]]>
// CHECK-NEXT: ttg.convert_layout %[[TOTAL_41]] : tensor<64x64xf32, #[[$MMA]]> -> tensor<64x64xf32, #[[$BLOCKED]]>

#blocked = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @matmul(%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %N: i32 {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %total = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #blocked>
    %c0_i32 = arith.constant 0 : i32
    %c64_i32 = arith.constant 64 : i32
    %c32_i32 = arith.constant 32 : i32
    %cst = arith.constant dense<32> : tensor<64x32xi32, #blocked1>
    %rows = tt.get_program_id x : i32
    %rows_0 = arith.muli %rows, %c64_i32 : i32
    %rows_1 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %rows_2 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked2}>>
    %rows_3 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked2}>>
    %rows_4 = tt.splat %rows_0 : i32 -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %rows_5 = tt.splat %rows_0 : i32 -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked2}>>
    %rows_6 = arith.addi %rows_4, %rows_1 : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %rows_7 = arith.addi %rows_5, %rows_2 : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked2}>>
    %columns = tt.get_program_id y : i32
    %columns_8 = arith.muli %columns, %c64_i32 : i32
    %columns_9 = tt.splat %columns_8 : i32 -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked2}>>
    %columns_10 = arith.addi %columns_9, %rows_3 : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked2}>>
    %a_ptrs = tt.expand_dims %rows_6 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64x1xi32, #blocked1>
    %a_ptrs_11 = tt.expand_dims %rows_7 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked2}>> -> tensor<64x1xi32, #blocked2>
    %a_ptrs_12 = tt.splat %K : i32 -> tensor<64x1xi32, #blocked1>
    %a_ptrs_13 = arith.muli %a_ptrs, %a_ptrs_12 : tensor<64x1xi32, #blocked1>
    %a_ptrs_14 = tt.splat %a_ptr : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>, #blocked1>
    %a_ptrs_15 = tt.addptr %a_ptrs_14, %a_ptrs_13 : tensor<64x1x!tt.ptr<f16>, #blocked1>, tensor<64x1xi32, #blocked1>
    %a_ptrs_16 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked1}>>
    %a_ptrs_17 = tt.expand_dims %a_ptrs_16 {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked1}>> -> tensor<1x32xi32, #blocked1>
    %a_ptrs_18 = tt.broadcast %a_ptrs_15 : tensor<64x1x!tt.ptr<f16>, #blocked1> -> tensor<64x32x!tt.ptr<f16>, #blocked1>
    %a_ptrs_19 = tt.broadcast %a_ptrs_17 : tensor<1x32xi32, #blocked1> -> tensor<64x32xi32, #blocked1>
    %a_ptrs_20 = tt.addptr %a_ptrs_18, %a_ptrs_19 : tensor<64x32x!tt.ptr<f16>, #blocked1>, tensor<64x32xi32, #blocked1>
    %b_ptrs = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked2}>>
    %b_ptrs_21 = tt.expand_dims %b_ptrs {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked2}>> -> tensor<32x1xi32, #blocked2>
    %b_ptrs_22 = tt.splat %N : i32 -> tensor<32x1xi32, #blocked2>
    %b_ptrs_23 = arith.muli %b_ptrs_21, %b_ptrs_22 : tensor<32x1xi32, #blocked2>
    %b_ptrs_24 = tt.splat %b_ptr : !tt.ptr<f16> -> tensor<32x1x!tt.ptr<f16>, #blocked2>
    %b_ptrs_25 = tt.addptr %b_ptrs_24, %b_ptrs_23 : tensor<32x1x!tt.ptr<f16>, #blocked2>, tensor<32x1xi32, #blocked2>
    %b_ptrs_26 = tt.expand_dims %columns_10 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked2}>> -> tensor<1x64xi32, #blocked2>
    %b_ptrs_27 = tt.broadcast %b_ptrs_25 : tensor<32x1x!tt.ptr<f16>, #blocked2> -> tensor<32x64x!tt.ptr<f16>, #blocked2>
    %b_ptrs_28 = tt.broadcast %b_ptrs_26 : tensor<1x64xi32, #blocked2> -> tensor<32x64xi32, #blocked2>
    %b_ptrs_29 = tt.addptr %b_ptrs_27, %b_ptrs_28 : tensor<32x64x!tt.ptr<f16>, #blocked2>, tensor<32x64xi32, #blocked2>
    %total_30:3 = scf.for %_ = %c0_i32 to %K step %c32_i32 iter_args(%total_31 = %total, %a_ptrs_32 = %a_ptrs_20, %b_ptrs_33 = %b_ptrs_29) -> (tensor<64x64xf32, #blocked>, tensor<64x32x!tt.ptr<f16>, #blocked1>, tensor<32x64x!tt.ptr<f16>, #blocked2>)  : i32 {
      %total_34 = tt.load %a_ptrs_32 : tensor<64x32x!tt.ptr<f16>, #blocked1>
      %total_35 = tt.load %b_ptrs_33 : tensor<32x64x!tt.ptr<f16>, #blocked2>
      %total_36 = ttg.convert_layout %total_34 : tensor<64x32xf16, #blocked1> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
      %total_37 = ttg.convert_layout %total_35 : tensor<32x64xf16, #blocked2> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
      %total_38 = tt.dot %total_36, %total_37, %total_31, inputPrecision = tf32 : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<64x64xf32, #blocked>
      %a_ptrs_39 = tt.addptr %a_ptrs_32, %cst : tensor<64x32x!tt.ptr<f16>, #blocked1>, tensor<64x32xi32, #blocked1>
      %b_ptrs_40 = arith.muli %N, %c32_i32 : i32
      %b_ptrs_41 = tt.splat %b_ptrs_40 : i32 -> tensor<32x64xi32, #blocked2>
      %b_ptrs_42 = tt.addptr %b_ptrs_33, %b_ptrs_41 : tensor<32x64x!tt.ptr<f16>, #blocked2>, tensor<32x64xi32, #blocked2>
      scf.yield %total_38, %a_ptrs_39, %b_ptrs_42 : tensor<64x64xf32, #blocked>, tensor<64x32x!tt.ptr<f16>, #blocked1>, tensor<32x64x!tt.ptr<f16>, #blocked2>
    }
    %0 = tt.splat %N : i32 -> tensor<64x1xi32, #blocked2>
    %1 = arith.muli %a_ptrs_11, %0 : tensor<64x1xi32, #blocked2>
    %2 = tt.splat %c_ptr : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>, #blocked2>
    %3 = tt.addptr %2, %1 : tensor<64x1x!tt.ptr<f16>, #blocked2>, tensor<64x1xi32, #blocked2>
    %4 = tt.broadcast %3 : tensor<64x1x!tt.ptr<f16>, #blocked2> -> tensor<64x64x!tt.ptr<f16>, #blocked2>
    %5 = tt.broadcast %b_ptrs_26 : tensor<1x64xi32, #blocked2> -> tensor<64x64xi32, #blocked2>
    %6 = tt.addptr %4, %5 : tensor<64x64x!tt.ptr<f16>, #blocked2>, tensor<64x64xi32, #blocked2>
    %7 = arith.truncf %total_30#0 : tensor<64x64xf32, #blocked> to tensor<64x64xf16, #blocked>
    %8 = ttg.convert_layout %7 : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #blocked2>
    tt.store %6, %8 : tensor<64x64x!tt.ptr<f16>, #blocked2>
    tt.return
  }
}
