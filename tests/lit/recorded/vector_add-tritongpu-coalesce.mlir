// RUN: triton-opt %s -split-input-file -tritongpu-coalesce | FileCheck %s
// tritongpu-coalesce of vector_add for cuda:80, pass 9, Triton 3.8.0

// CHECK: #[[$BLOCKED:.+]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: #[[$BLOCKED1:.+]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: tt.func public @vector_add(
// CHECK: %[[X_6:[^ ]+]] = ttg.convert_layout %{{[^ ]+}} : tensor<1024x!tt.ptr<f32>, #[[$BLOCKED]]> -> tensor<1024x!tt.ptr<f32>, #[[$BLOCKED1]]>
// CHECK-NEXT: %[[X_7:[^ ]+]] = ttg.convert_layout %{{[^ ]+}} : tensor<1024xi1, #[[$BLOCKED]]> -> tensor<1024xi1, #[[$BLOCKED1]]>
// CHECK-NEXT: %[[X_8:[^ ]+]] = tt.load %[[X_6]], %[[X_7]] : tensor<1024x!tt.ptr<f32>, #[[$BLOCKED1]]>
// CHECK-NEXT: ttg.convert_layout %[[X_8]] : tensor<1024xf32, #[[$BLOCKED1]]> -> tensor<1024xf32, #[[$BLOCKED]]>
// CHECK: %[[Y_11:[^ ]+]] = ttg.convert_layout %{{[^ ]+}} : tensor<1024x!tt.ptr<f32>, #[[$BLOCKED]]> -> tensor<1024x!tt.ptr<f32>, #[[$BLOCKED1]]>
// CHECK-NEXT: %[[Y_12:[^ ]+]] = ttg.convert_layout %{{[^ ]+}} : tensor<1024xi1, #[[$BLOCKED]]> -> tensor<1024xi1, #[[$BLOCKED1]]>
// CHECK-NEXT: %[[Y_13:[^ ]+]] = tt.load %[[Y_11]], %[[Y_12]] : tensor<1024x!tt.ptr<f32>, #[[$BLOCKED1]]>
// CHECK-NEXT: ttg.convert_layout %[[Y_13]] : tensor<1024xf32, #[[$BLOCKED1]]> -> tensor<1024xf32, #[[$BLOCKED]]>
// CHECK: %[[CONVERT_LAYOUT:[^ ]+]] = ttg.convert_layout %{{[^ ]+}} : tensor<1024x!tt.ptr<f32>, #[[$BLOCKED]]> -> tensor<1024x!tt.ptr<f32>, #[[$BLOCKED1]]>
// CHECK-NEXT: %[[CONVERT_LAYOUT_N1:[^ ]+]] = ttg.convert_layout %{{[^ ]+}} : tensor<1024xf32, #[[$BLOCKED]]> -> tensor<1024xf32, #[[$BLOCKED1]]>
// CHECK-NEXT: %[[CONVERT_LAYOUT_N2:[^ ]+]] = ttg.convert_layout %{{[^ ]+}} : tensor<1024xi1, #[[$BLOCKED]]> -> tensor<1024xi1, #[[$BLOCKED1]]>
// CHECK-NEXT: tt.store %[[CONVERT_LAYOUT]], %[[CONVERT_LAYOUT_N1]], %[[CONVERT_LAYOUT_N2]] : tensor<1024x!tt.ptr<f32>, #[[$BLOCKED1]]>

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @vector_add(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %c1024_i32 = arith.constant 1024 : i32
    %offsets = tt.get_program_id x : i32
    %offsets_0 = arith.muli %offsets, %c1024_i32 : i32
    %offsets_1 = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #blocked>
    %offsets_2 = tt.splat %offsets_0 : i32 -> tensor<1024xi32, #blocked>
    %offsets_3 = arith.addi %offsets_2, %offsets_1 : tensor<1024xi32, #blocked>
    %inside = tt.splat %n : i32 -> tensor<1024xi32, #blocked>
    %inside_4 = arith.cmpi slt, %offsets_3, %inside : tensor<1024xi32, #blocked>
    %x = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
    %x_5 = tt.addptr %x, %offsets_3 : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
    %x_6 = tt.load %x_5, %inside_4 : tensor<1024x!tt.ptr<f32>, #blocked>
    %y = tt.splat %y_ptr : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
    %y_7 = tt.addptr %y, %offsets_3 : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
    %y_8 = tt.load %y_7, %inside_4 : tensor<1024x!tt.ptr<f32>, #blocked>
    %0 = tt.splat %out_ptr : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
    %1 = tt.addptr %0, %offsets_3 : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
    %2 = arith.addf %x_6, %y_8 : tensor<1024xf32, #blocked>
    tt.store %1, %2, %inside_4 : tensor<1024x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
