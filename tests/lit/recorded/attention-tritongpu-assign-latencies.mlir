// RUN: triton-opt %s -split-input-file -tritongpu-assign-latencies="num-stages=3" | FileCheck %s
// tritongpu-assign-latencies of attention for cuda:90, pass 24, Triton 3.8.0

// CHECK: #[[$BLOCKED:.+]] = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK: #[[$BLOCKED1:.+]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: tt.func public @attention(
// CHECK: tt.load %{{[^ ]+}} {tt.latency = 2 : i32} : tensor<64x64x!tt.ptr<f16>, #[[$BLOCKED]]>
// CHECK: tt.load %{{[^ ]+}} {tt.latency = 2 : i32} : tensor<64x64x!tt.ptr<f16>, #[[$BLOCKED1]]>

#blocked = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @attention(%q_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %k_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %v_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %keys: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %cst = arith.constant dense<64> : tensor<1x64xi32, #blocked>
    %cst_0 = arith.constant dense<64> : tensor<64x1xi32, #blocked1>
    %c64_i32 = arith.constant 64 : i32
    %c0_i32 = arith.constant 0 : i32
    %highest = arith.constant dense<0xFF800000> : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
    %weight = arith.constant dense<0.000000e+00> : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
    %rows = tt.get_program_id x : i32
    %rows_2 = arith.muli %rows, %c64_i32 : i32
    %rows_3 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %rows_4 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %rows_5 = tt.splat %rows_2 : i32 -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %rows_6 = arith.addi %rows_5, %rows_3 : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %q = tt.expand_dims %rows_6 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64x1xi32, #blocked1>
    %q_7 = arith.muli %q, %cst_0 : tensor<64x1xi32, #blocked1>
    %q_8 = tt.splat %q_ptr : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>, #blocked1>
    %q_9 = tt.addptr %q_8, %q_7 : tensor<64x1x!tt.ptr<f16>, #blocked1>, tensor<64x1xi32, #blocked1>
    %q_10 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked1}>>
    %q_11 = tt.expand_dims %q_10 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked1}>> -> tensor<1x64xi32, #blocked1>
    %q_12 = tt.broadcast %q_9 : tensor<64x1x!tt.ptr<f16>, #blocked1> -> tensor<64x64x!tt.ptr<f16>, #blocked1>
    %q_13 = tt.broadcast %q_11 : tensor<1x64xi32, #blocked1> -> tensor<64x64xi32, #blocked1>
    %q_14 = tt.addptr %q_12, %q_13 : tensor<64x64x!tt.ptr<f16>, #blocked1>, tensor<64x64xi32, #blocked1>
    %q_15 = tt.load %q_14 : tensor<64x64x!tt.ptr<f16>, #blocked1>
    %q_16 = ttg.local_alloc %q_15 : (tensor<64x64xf16, #blocked1>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    %k = tt.splat %k_ptr : !tt.ptr<f16> -> tensor<1x64x!tt.ptr<f16>, #blocked>
    %k_17 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %k_18 = tt.expand_dims %k_17 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
    %k_19 = tt.broadcast %k_18 : tensor<64x1xi32, #blocked> -> tensor<64x64xi32, #blocked>
    %v = tt.splat %v_ptr : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>, #blocked1>
    %total:3 = scf.for %start = %c0_i32 to %keys step %c64_i32 iter_args(%highest_20 = %highest, %weight_21 = %weight, %total_22 = %cst_1) -> (tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>, tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>, tensor<64x64xf32, #mma>)  : i32 {
      %key = tt.splat %start : i32 -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
      %key_23 = tt.splat %start : i32 -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
      %key_24 = arith.addi %key, %rows_4 : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
      %key_25 = arith.addi %key_23, %rows_3 : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
      %k_26 = tt.expand_dims %key_24 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
      %k_27 = arith.muli %k_26, %cst : tensor<1x64xi32, #blocked>
      %k_28 = tt.addptr %k, %k_27 : tensor<1x64x!tt.ptr<f16>, #blocked>, tensor<1x64xi32, #blocked>
      %k_29 = tt.broadcast %k_28 : tensor<1x64x!tt.ptr<f16>, #blocked> -> tensor<64x64x!tt.ptr<f16>, #blocked>
      %k_30 = tt.addptr %k_29, %k_19 : tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xi32, #blocked>
      %k_31 = tt.load %k_30 : tensor<64x64x!tt.ptr<f16>, #blocked>
      %k_32 = ttg.local_alloc %k_31 : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared1, #smem>
      %scores = ttng.warp_group_dot %q_16, %k_32, %cst_1 {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf32, #mma>
      %higher = "tt.reduce"(%scores) <{axis = 1 : i32}> ({
      ^bb0(%higher_55: f32, %higher_56: f32):
        %higher_57 = arith.maxnumf %higher_55, %higher_56 : f32
        tt.reduce.return %higher_57 : f32
      }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
      %higher_33 = arith.maxnumf %highest_20, %higher : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
      %scale = arith.subf %highest_20, %higher_33 : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
      %scale_34 = math.exp %scale : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
      %scores_35 = tt.expand_dims %higher_33 {axis = 1 : i32} : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>> -> tensor<64x1xf32, #mma>
      %scores_36 = tt.broadcast %scores_35 : tensor<64x1xf32, #mma> -> tensor<64x64xf32, #mma>
      %scores_37 = arith.subf %scores, %scores_36 : tensor<64x64xf32, #mma>
      %scores_38 = math.exp %scores_37 : tensor<64x64xf32, #mma>
      %weight_39 = arith.mulf %weight_21, %scale_34 : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
      %weight_40 = "tt.reduce"(%scores_38) <{axis = 1 : i32}> ({
      ^bb0(%weight_55: f32, %weight_56: f32):
        %weight_57 = arith.addf %weight_55, %weight_56 : f32
        tt.reduce.return %weight_57 : f32
      }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
      %weight_41 = arith.addf %weight_39, %weight_40 : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
      %v_42 = tt.expand_dims %key_25 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64x1xi32, #blocked1>
      %v_43 = arith.muli %v_42, %cst_0 : tensor<64x1xi32, #blocked1>
      %v_44 = tt.addptr %v, %v_43 : tensor<64x1x!tt.ptr<f16>, #blocked1>, tensor<64x1xi32, #blocked1>
      %v_45 = tt.broadcast %v_44 : tensor<64x1x!tt.ptr<f16>, #blocked1> -> tensor<64x64x!tt.ptr<f16>, #blocked1>
      %v_46 = tt.addptr %v_45, %q_13 : tensor<64x64x!tt.ptr<f16>, #blocked1>, tensor<64x64xi32, #blocked1>
      %v_47 = tt.load %v_46 : tensor<64x64x!tt.ptr<f16>, #blocked1>
      %v_48 = ttg.local_alloc %v_47 : (tensor<64x64xf16, #blocked1>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %total_49 = arith.truncf %scores_38 : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
      %total_50 = tt.expand_dims %scale_34 {axis = 1 : i32} : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>> -> tensor<64x1xf32, #mma>
      %total_51 = tt.broadcast %total_50 : tensor<64x1xf32, #mma> -> tensor<64x64xf32, #mma>
      %total_52 = arith.mulf %total_22, %total_51 : tensor<64x64xf32, #mma>
      %total_53 = ttg.convert_layout %total_49 : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %total_54 = ttng.warp_group_dot %total_53, %v_48, %total_52 {inputPrecision = 0 : i32} : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %higher_33, %weight_41, %total_54 : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>, tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>, tensor<64x64xf32, #mma>
    }
    %0 = tt.splat %out_ptr : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>, #blocked1>
    %1 = tt.addptr %0, %q_7 : tensor<64x1x!tt.ptr<f16>, #blocked1>, tensor<64x1xi32, #blocked1>
    %2 = tt.broadcast %1 : tensor<64x1x!tt.ptr<f16>, #blocked1> -> tensor<64x64x!tt.ptr<f16>, #blocked1>
    %3 = tt.addptr %2, %q_13 : tensor<64x64x!tt.ptr<f16>, #blocked1>, tensor<64x64xi32, #blocked1>
    %4 = tt.expand_dims %total#1 {axis = 1 : i32} : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>> -> tensor<64x1xf32, #mma>
    %5 = tt.broadcast %4 : tensor<64x1xf32, #mma> -> tensor<64x64xf32, #mma>
    %6 = arith.divf %total#2, %5 : tensor<64x64xf32, #mma>
    %7 = arith.truncf %6 : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
    %8 = ttg.convert_layout %7 : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #blocked1>
    tt.store %3, %8 : tensor<64x64x!tt.ptr<f16>, #blocked1>
    tt.return
  }
}
