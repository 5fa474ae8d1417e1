// RUN: triton-opt %s -split-input-file -tritongpu-pipeline="num-stages=3 dump-intermediate-steps=false" | FileCheck %s --implicit-check-not=tt.load
// tritongpu-pipeline of matmul for cuda:80, pass 27, Triton 3.8.0

// CHECK: #[[$BLOCKED:.+]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK: #[[$BLOCKED1:.+]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK: #[[$MMA:.+]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK: #[[$SHARED:.+]] = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
// CHECK: #[[$SHARED1:.+]] = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
// CHECK: #[[$SMEM:.+]] = #ttg.shared_memory
// CHECK-LABEL: tt.func public @matmul(
// CHECK-SAME: attributes {noinline = false}
// CHECK: arith.constant 2 : i32
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x64x32xf16, #[[$SHARED]], #[[$SMEM]], mutable>
// CHECK: arith.cmpi sgt, %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: ttg.memdesc_index %{{[^ ]+}}[%{{[^ ]+}}] : !ttg.memdesc<2x64x32xf16, #[[$SHARED]], #[[$SMEM]], mutable> -> !ttg.memdesc<64x32xf16, #[[$SHARED]], #[[$SMEM]], mutable>
// CHECK: tt.splat %{{[^ ]+}} : i1 -> tensor<64x32xi1, #[[$BLOCKED]]>
// CHECK: ttg.async_copy_global_to_local %{{[^ ]+}}, %{{[^ ]+}} mask %{{[^ ]+}} {contiguity = 8 : i32} : tensor<64x32x!tt.ptr<f16>, #[[$BLOCKED]]> -> <64x32xf16, #[[$SHARED]], #[[$SMEM]], mutable>
// CHECK: ttg.async_commit_group tokens %{{[^ ]+}}
// CHECK: tt.addptr %{{[^ ]+}}, %{{[^ ]+}} : tensor<64x32x!tt.ptr<f16>, #[[$BLOCKED]]>, tensor<64x32xi32, #[[$BLOCKED]]>
// CHECK: scf.for %{{[^ ]+}} = %{{[^ ]+}} to %{{[^ ]+}} step %{{[^ ]+}} iter_args(%{{[^ ]+}} = %{{[^ ]+}}, %{{[^ ]+}} = %{{[^ ]+}}, %{{[^ ]+}} = %{{[^ ]+}}, %{{[^ ]+}} = %{{[^ ]+}}, %{{[^ ]+}} = %{{[^ ]+}}, %{{[^ ]+}} = %{{[^ ]+}}, %{{[^ ]+}} = %{{[^ ]+}}, %{{[^ ]+}} = %{{[^ ]+}}, %{{[^ ]+}} = %{{[^ ]+}}, %{{[^ ]+}} = %{{[^ ]+}}, %{{[^ ]+}} = %{{[^ ]+}}) -> (tensor<64x64xf32, #[[$MMA]]>, tensor<64x32x!tt.ptr<f16>, #[[$BLOCKED]]>, tensor<32x64x!tt.ptr<f16>, #[[$BLOCKED1]]>, i32, i32, i32, i32, !ttg.async.token, !ttg.async.token, !ttg.async.token, !ttg.async.token)  : i32 {
// CHECK: arith.subi %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: arith.addi %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: arith.select %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: ttg.async_wait %{{[^ ]+}}, %{{[^ ]+}} {num = 2 : i32}
// CHECK: ttg.local_load %{{[^ ]+}} token %{{[^ ]+}} : !ttg.memdesc<64x32xf16, #[[$SHARED]], #[[$SMEM]], mutable> -> tensor<64x32xf16, #[[$BLOCKED]]>
// CHECK: ttg.convert_layout %{{[^ ]+}} : tensor<64x32xf16, #[[$BLOCKED]]> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #[[$MMA]], kWidth = 2}>>
// CHECK: tt.dot %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, inputPrecision = tf32 : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #[[$MMA]], kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #[[$MMA]], kWidth = 2}>> -> tensor<64x64xf32, #[[$MMA]]>
// CHECK: scf.yield %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}} : tensor<64x64xf32, #[[$MMA]]>, tensor<64x32x!tt.ptr<f16>, #[[$BLOCKED]]>, tensor<32x64x!tt.ptr<f16>, #[[$BLOCKED1]]>, i32, i32, i32, i32, !ttg.async.token, !ttg.async.token, !ttg.async.token, !ttg.async.token
// CHECK: ttg.local_dealloc %{{[^ ]+}} : !ttg.memdesc<2x32x64xf16, #[[$SHARED1]], #[[$SMEM]], mutable>

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @matmul(%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %N: i32 {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %cst = arith.constant dense<32> : tensor<64x32xi32, #blocked>
    %c32_i32 = arith.constant 32 : i32
    %c64_i32 = arith.constant 64 : i32
    %c0_i32 = arith.constant 0 : i32
    %total = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
    %rows = tt.get_program_id x : i32
    %rows_0 = arith.muli %rows, %c64_i32 : i32
    %rows_1 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %rows_2 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %rows_3 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked1}>>
    %rows_4 = tt.splat %rows_0 : i32 -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %rows_5 = tt.splat %rows_0 : i32 -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %rows_6 = arith.addi %rows_4, %rows_1 : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %rows_7 = arith.addi %rows_5, %rows_2 : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %columns = tt.get_program_id y : i32
    %columns_8 = arith.muli %columns, %c64_i32 : i32
    %columns_9 = tt.splat %columns_8 : i32 -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked1}>>
    %columns_10 = arith.addi %columns_9, %rows_3 : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked1}>>
    %a_ptrs = tt.expand_dims %rows_6 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
    %a_ptrs_11 = tt.expand_dims %rows_7 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64x1xi32, #blocked1>
    %a_ptrs_12 = tt.splat %K : i32 -> tensor<64x1xi32, #blocked>
    %a_ptrs_13 = arith.muli %a_ptrs, %a_ptrs_12 : tensor<64x1xi32, #blocked>
    %a_ptrs_14 = tt.splat %a_ptr : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>, #blocked>
    %a_ptrs_15 = tt.addptr %a_ptrs_14, %a_ptrs_13 : tensor<64x1x!tt.ptr<f16>, #blocked>, tensor<64x1xi32, #blocked>
    %a_ptrs_16 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %a_ptrs_17 = tt.expand_dims %a_ptrs_16 {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x32xi32, #blocked>
    %a_ptrs_18 = tt.broadcast %a_ptrs_15 : tensor<64x1x!tt.ptr<f16>, #blocked> -> tensor<64x32x!tt.ptr<f16>, #blocked>
    %a_ptrs_19 = tt.broadcast %a_ptrs_17 : tensor<1x32xi32, #blocked> -> tensor<64x32xi32, #blocked>
    %a_ptrs_20 = tt.addptr %a_ptrs_18, %a_ptrs_19 : tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<64x32xi32, #blocked>
    %b_ptrs = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %b_ptrs_21 = tt.expand_dims %b_ptrs {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<32x1xi32, #blocked1>
    %b_ptrs_22 = tt.splat %N : i32 -> tensor<32x1xi32, #blocked1>
    %b_ptrs_23 = arith.muli %b_ptrs_21, %b_ptrs_22 : tensor<32x1xi32, #blocked1>
    %b_ptrs_24 = tt.splat %b_ptr : !tt.ptr<f16> -> tensor<32x1x!tt.ptr<f16>, #blocked1>
    %b_ptrs_25 = tt.addptr %b_ptrs_24, %b_ptrs_23 : tensor<32x1x!tt.ptr<f16>, #blocked1>, tensor<32x1xi32, #blocked1>
    %b_ptrs_26 = tt.expand_dims %columns_10 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked1}>> -> tensor<1x64xi32, #blocked1>
    %b_ptrs_27 = tt.broadcast %b_ptrs_25 : tensor<32x1x!tt.ptr<f16>, #blocked1> -> tensor<32x64x!tt.ptr<f16>, #blocked1>
    %b_ptrs_28 = tt.broadcast %b_ptrs_26 : tensor<1x64xi32, #blocked1> -> tensor<32x64xi32, #blocked1>
    %b_ptrs_29 = tt.addptr %b_ptrs_27, %b_ptrs_28 : tensor<32x64x!tt.ptr<f16>, #blocked1>, tensor<32x64xi32, #blocked1>
    %b_ptrs_30 = arith.muli %N, %c32_i32 : i32
    %b_ptrs_31 = tt.splat %b_ptrs_30 : i32 -> tensor<32x64xi32, #blocked1>
    %total_32:3 = scf.for %_ = %c0_i32 to %K step %c32_i32 iter_args(%total_33 = %total, %a_ptrs_34 = %a_ptrs_20, %b_ptrs_35 = %b_ptrs_29) -> (tensor<64x64xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<32x64x!tt.ptr<f16>, #blocked1>)  : i32 {
      %total_36 = tt.load %a_ptrs_34 {loop.cluster = 3 : i32, loop.stage = 0 : i32} : tensor<64x32x!tt.ptr<f16>, #blocked>
      %total_37 = tt.load %b_ptrs_35 {loop.cluster = 3 : i32, loop.stage = 0 : i32} : tensor<32x64x!tt.ptr<f16>, #blocked1>
      %total_38 = ttg.convert_layout %total_36 {loop.cluster = 0 : i32, loop.stage = 2 : i32} : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %total_39 = ttg.convert_layout %total_37 {loop.cluster = 0 : i32, loop.stage = 2 : i32} : tensor<32x64xf16, #blocked1> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
      %total_40 = tt.dot %total_38, %total_39, %total_33, inputPrecision = tf32 {loop.cluster = 0 : i32, loop.stage = 2 : i32} : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
      %a_ptrs_41 = tt.addptr %a_ptrs_34, %cst {loop.cluster = 2 : i32, loop.stage = 1 : i32} : tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<64x32xi32, #blocked>
      %b_ptrs_42 = tt.addptr %b_ptrs_35, %b_ptrs_31 {loop.cluster = 2 : i32, loop.stage = 1 : i32} : tensor<32x64x!tt.ptr<f16>, #blocked1>, tensor<32x64xi32, #blocked1>
      scf.yield %total_40, %a_ptrs_41, %b_ptrs_42 : tensor<64x64xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<32x64x!tt.ptr<f16>, #blocked1>
    } {tt.scheduled_max_stage = 2 : i32}
    %0 = tt.splat %N : i32 -> tensor<64x1xi32, #blocked1>
    %1 = arith.muli %a_ptrs_11, %0 : tensor<64x1xi32, #blocked1>
    %2 = tt.splat %c_ptr : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>, #blocked1>
    %3 = tt.addptr %2, %1 : tensor<64x1x!tt.ptr<f16>, #blocked1>, tensor<64x1xi32, #blocked1>
    %4 = tt.broadcast %3 : tensor<64x1x!tt.ptr<f16>, #blocked1> -> tensor<64x64x!tt.ptr<f16>, #blocked1>
    %5 = tt.broadcast %b_ptrs_26 : tensor<1x64xi32, #blocked1> -> tensor<64x64xi32, #blocked1>
    %6 = tt.addptr %4, %5 : tensor<64x64x!tt.ptr<f16>, #blocked1>, tensor<64x64xi32, #blocked1>
    %7 = arith.truncf %total_32#0 : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
    %8 = ttg.convert_layout %7 : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #blocked1>
    tt.store %6, %8 : tensor<64x64x!tt.ptr<f16>, #blocked1>
    tt.return
  }
}
