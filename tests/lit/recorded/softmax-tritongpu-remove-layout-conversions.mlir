// RUN: triton-opt %s -split-input-file -tritongpu-remove-layout-conversions | FileCheck %s --implicit-check-not=ttg.convert_layout
// tritongpu-remove-layout-conversions of softmax for cuda:90, pass 11, Triton 3.8.0

// CHECK: #[[$BLOCKED:.+]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: tt.func public @softmax(
// CHECK-SAME: %{{[^ ]+}}: !tt.ptr<f32>
// CHECK-SAME: %{{[^ ]+}}: !tt.ptr<f32>
// CHECK-SAME: %[[COLUMNS:[^ ]+]]: i32
// CHECK: %[[X:[^ ]+]] = arith.constant dense<0xFF800000> : tensor<1024xf32, #[[$BLOCKED]]>
// CHECK: %[[OFFSETS:[^ ]+]] = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #[[$BLOCKED]]>
// CHECK-NEXT: %[[INSIDE:[^ ]+]] = tt.splat %[[COLUMNS]] : i32 -> tensor<1024xi32, #[[$BLOCKED]]>
// CHECK-NEXT: %[[INSIDE_1:[^ ]+]] = arith.cmpi slt, %[[OFFSETS]], %[[INSIDE]] : tensor<1024xi32, #[[$BLOCKED]]>
// CHECK: %[[X_3:[^ ]+]] = tt.splat %{{[^ ]+}} : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #[[$BLOCKED]]>
// CHECK-NEXT: %[[X_4:[^ ]+]] = tt.addptr %[[X_3]], %[[OFFSETS]] : tensor<1024x!tt.ptr<f32>, #[[$BLOCKED]]>, tensor<1024xi32, #[[$BLOCKED]]>
// CHECK-NEXT: %[[X_5:[^ ]+]] = tt.load %[[X_4]], %[[INSIDE_1]], %[[X]] : tensor<1024x!tt.ptr<f32>, #[[$BLOCKED]]>
// CHECK-NEXT: %[[X_6:[^ ]+]] = "tt.reduce"(%[[X_5]]) <{axis = 0 : i32}> ({
// CHECK: }) : (tensor<1024xf32, #[[$BLOCKED]]>) -> f32
// CHECK-NEXT: %[[X_7:[^ ]+]] = tt.splat %[[X_6]] : f32 -> tensor<1024xf32, #[[$BLOCKED]]>
// CHECK-NEXT: %[[X_8:[^ ]+]] = arith.subf %[[X_5]], %[[X_7]] : tensor<1024xf32, #[[$BLOCKED]]>
// CHECK-NEXT: %[[X_9:[^ ]+]] = math.exp %[[X_8]] : tensor<1024xf32, #[[$BLOCKED]]>
// CHECK: %[[SPLAT:[^ ]+]] = tt.splat %{{[^ ]+}} : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #[[$BLOCKED]]>
// CHECK-NEXT: tt.addptr %[[SPLAT]], %[[OFFSETS]] : tensor<1024x!tt.ptr<f32>, #[[$BLOCKED]]>, tensor<1024xi32, #[[$BLOCKED]]>
// CHECK: }) : (tensor<1024xf32, #[[$BLOCKED]]>) -> f32
// CHECK-NEXT: %[[SPLAT_N1:[^ ]+]] = tt.splat %{{[^ ]+}} : f32 -> tensor<1024xf32, #[[$BLOCKED]]>
// CHECK-NEXT: arith.divf %[[X_9]], %[[SPLAT_N1]] : tensor<1024xf32, #[[$BLOCKED]]>

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @softmax(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %columns: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %x = arith.constant dense<0xFF800000> : tensor<1024xf32, #blocked>
    %row = tt.get_program_id x : i32
    %row_0 = arith.muli %row, %columns : i32
    %offsets = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #blocked>
    %inside = tt.splat %columns : i32 -> tensor<1024xi32, #blocked>
    %inside_1 = arith.cmpi slt, %offsets, %inside : tensor<1024xi32, #blocked>
    %x_2 = tt.addptr %x_ptr, %row_0 : !tt.ptr<f32>, i32
    %x_3 = tt.splat %x_2 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
    %x_4 = tt.addptr %x_3, %offsets : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
    %x_5 = ttg.convert_layout %x_4 : tensor<1024x!tt.ptr<f32>, #blocked> -> tensor<1024x!tt.ptr<f32>, #blocked1>
    %x_6 = ttg.convert_layout %inside_1 : tensor<1024xi1, #blocked> -> tensor<1024xi1, #blocked1>
    %x_7 = ttg.convert_layout %x : tensor<1024xf32, #blocked> -> tensor<1024xf32, #blocked1>
    %x_8 = tt.load %x_5, %x_6, %x_7 : tensor<1024x!tt.ptr<f32>, #blocked1>
    %x_9 = ttg.convert_layout %x_8 : tensor<1024xf32, #blocked1> -> tensor<1024xf32, #blocked>
    %x_10 = "tt.reduce"(%x_9) <{axis = 0 : i32}> ({
    ^bb0(%x_14: f32, %x_15: f32):
      %x_16 = arith.maxnumf %x_14, %x_15 : f32
      tt.reduce.return %x_16 : f32
    }) : (tensor<1024xf32, #blocked>) -> f32
    %x_11 = tt.splat %x_10 : f32 -> tensor<1024xf32, #blocked>
    %x_12 = arith.subf %x_9, %x_11 : tensor<1024xf32, #blocked>
    %x_13 = math.exp %x_12 : tensor<1024xf32, #blocked>
    %0 = tt.addptr %out_ptr, %row_0 : !tt.ptr<f32>, i32
    %1 = tt.splat %0 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
    %2 = tt.addptr %1, %offsets : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
    %3 = "tt.reduce"(%x_13) <{axis = 0 : i32}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      %9 = arith.addf %arg3, %arg4 : f32
      tt.reduce.return %9 : f32
    }) : (tensor<1024xf32, #blocked>) -> f32
    %4 = tt.splat %3 : f32 -> tensor<1024xf32, #blocked>
    %5 = arith.divf %x_13, %4 : tensor<1024xf32, #blocked>
    %6 = ttg.convert_layout %2 : tensor<1024x!tt.ptr<f32>, #blocked> -> tensor<1024x!tt.ptr<f32>, #blocked1>
    %7 = ttg.convert_layout %5 : tensor<1024xf32, #blocked> -> tensor<1024xf32, #blocked1>
    %8 = ttg.convert_layout %inside_1 : tensor<1024xi1, #blocked> -> tensor<1024xi1, #blocked1>
    tt.store %6, %7, %8 : tensor<1024x!tt.ptr<f32>, #blocked1>
    tt.return
  }
}
