// RUN: triton-opt %s -split-input-file -inline | FileCheck %s --implicit-check-not=arith.andi --implicit-check-not=arith.extsi --implicit-check-not=tt.call --implicit-check-not=ub.poison
// inline of softmax for cuda:90, pass 0, Triton 3.8.0

// CHECK-LABEL: tt.func public @softmax(
// CHECK-SAME: %{{[^ ]+}}: !tt.ptr<f32>
// CHECK-SAME: %{{[^ ]+}}: !tt.ptr<f32>
// CHECK-SAME: %[[COLUMNS:[^ ]+]]: i32
// CHECK: %[[X:[^ ]+]] = arith.constant dense<0xFF800000> : tensor<1024xf32>
// CHECK-NEXT: %[[ROW:[^ ]+]] = tt.get_program_id x : i32
// CHECK-NEXT: arith.muli %[[ROW]], %[[COLUMNS]] : i32
// CHECK: %[[X_4:[^ ]+]] = tt.addptr %{{[^ ]+}}, %{{[^ ]+}} : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
// CHECK-NEXT: %[[X_5:[^ ]+]] = tt.load %[[X_4]], %{{[^ ]+}}, %[[X]] : tensor<1024x!tt.ptr<f32>>
// CHECK-NEXT: "tt.reduce"(%[[X_5]]) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb{{[0-9]+}}(%[[X_10:[^ ]+]]: f32, %[[X_11:[^ ]+]]: f32):
// CHECK-NEXT: %[[X_12:[^ ]+]] = arith.maxnumf %[[X_10]], %[[X_11]] : f32
// CHECK-NEXT: tt.reduce.return %[[X_12]] : f32
// CHECK-NEXT: }) : (tensor<1024xf32>) -> f32
// CHECK: "tt.reduce"(%{{[^ ]+}}) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb{{[0-9]+}}(%[[ARG3:[^ ]+]]: f32, %[[ARG4:[^ ]+]]: f32):
// CHECK-NEXT: %[[ADDF:[^ ]+]] = arith.addf %[[ARG3]], %[[ARG4]] : f32
// CHECK-NEXT: tt.reduce.return %[[ADDF]] : f32
// CHECK-NEXT: }) : (tensor<1024xf32>) -> f32

module {
  tt.func public @softmax(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %columns: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %row = tt.get_program_id x : i32
    %row_0 = arith.extsi %row : i32 to i64
    %row_1 = arith.extsi %columns : i32 to i64
    %row_2 = arith.muli %row_0, %row_1 : i64
    %row_3 = arith.constant 2147483647 : i64
    %row_4 = arith.constant -2147483648 : i64
    %row_5 = arith.cmpi sle, %row_2, %row_3 : i64
    %row_6 = arith.cmpi sge, %row_2, %row_4 : i64
    %row_7 = arith.andi %row_5, %row_6 : i1
    %row_8 = arith.muli %row, %columns : i32
    %offsets = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %inside = tt.splat %columns : i32 -> tensor<1024xi32>
    %inside_9 = arith.cmpi slt, %offsets, %inside : tensor<1024xi32>
    %x = tt.addptr %x_ptr, %row_8 : !tt.ptr<f32>, i32
    %x_10 = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %x_11 = tt.addptr %x_10, %offsets : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %x_12 = arith.constant 0xFF800000 : f32
    %x_13 = arith.constant dense<0xFF800000> : tensor<1024xf32>
    %x_14 = tt.load %x_11, %inside_9, %x_13 : tensor<1024x!tt.ptr<f32>>
    %x_15 = tt.call @triton.language.standard.max__fp32S1024S_c0_cFalse_cTrue_cFalse(%x_14) : (tensor<1024xf32>) -> f32
    %x_16 = tt.splat %x_15 : f32 -> tensor<1024xf32>
    %x_17 = arith.subf %x_14, %x_16 : tensor<1024xf32>
    %x_18 = math.exp %x_17 : tensor<1024xf32>
    %0 = tt.addptr %out_ptr, %row_8 : !tt.ptr<f32>, i32
    %1 = tt.splat %0 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %2 = tt.addptr %1, %offsets : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %3 = tt.call @triton.language.standard.sum__fp32S1024S_c0_cFalse_cNone(%x_18) : (tensor<1024xf32>) -> f32
    %4 = tt.splat %3 : f32 -> tensor<1024xf32>
    %5 = arith.divf %x_18, %4 : tensor<1024xf32>
    tt.store %2, %5, %inside_9 : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
  tt.func private @triton.language.standard.max__fp32S1024S_c0_cFalse_cTrue_cFalse(%input: tensor<1024xf32>) -> f32 attributes {noinline = false} {
    %0 = "tt.reduce"(%input) <{axis = 0 : i32}> ({
    ^bb0(%arg1: f32, %arg2: f32):
      %2 = tt.call @triton.language.standard._elementwise_max__fp32_fp32(%arg1, %arg2) : (f32, f32) -> f32
      tt.reduce.return %2 : f32
    }) : (tensor<1024xf32>) -> f32
    tt.return %0 : f32
  ^bb1:  // no predecessors
    %1 = ub.poison : f32
    tt.return %1 : f32
  }
  tt.func private @triton.language.standard._elementwise_max__fp32_fp32(%a: f32, %b: f32) -> f32 attributes {noinline = false} {
    %0 = arith.maxnumf %a, %b : f32
    tt.return %0 : f32
  ^bb1:  // no predecessors
    %1 = ub.poison : f32
    tt.return %1 : f32
  }
  tt.func private @triton.language.standard.sum__fp32S1024S_c0_cFalse_cNone(%input: tensor<1024xf32>) -> f32 attributes {noinline = false} {
    %0 = "tt.reduce"(%input) <{axis = 0 : i32}> ({
    ^bb0(%arg1: f32, %arg2: f32):
      %2 = tt.call @triton.language.standard._sum_combine__fp32_fp32(%arg1, %arg2) : (f32, f32) -> f32
      tt.reduce.return %2 : f32
    }) : (tensor<1024xf32>) -> f32
    tt.return %0 : f32
  ^bb1:  // no predecessors
    %1 = ub.poison : f32
    tt.return %1 : f32
  }
  tt.func private @triton.language.standard._sum_combine__fp32_fp32(%a: f32, %b: f32) -> f32 attributes {noinline = false} {
    %0 = arith.addf %a, %b : f32
    tt.return %0 : f32
  ^bb1:  // no predecessors
    %1 = ub.poison : f32
    tt.return %1 : f32
  }
}
