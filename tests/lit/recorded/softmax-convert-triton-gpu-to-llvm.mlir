// RUN: triton-opt %s -split-input-file -convert-triton-gpu-to-llvm="compute-capability=90 ptx-version=88 enable-concurrency-sanitizer=false" | FileCheck %s --implicit-check-not=tt.addptr --implicit-check-not=tt.reduce --implicit-check-not=tt.reduce.return --implicit-check-not=tt.splat
// convert-triton-gpu-to-llvm of softmax for cuda:90, pass 54, Triton 3.8.0

// CHECK: llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK-LABEL: llvm.func @softmax(
// CHECK-SAME: attributes {noinline = false, nvvm.kernel = 1 : ui1, nvvm.reqntid = array<i32: 128>}
// CHECK: builtin.unrealized_conversion_cast %{{[^ ]+}} : !llvm.ptr<1> to !tt.ptr<f32>
// CHECK: llvm.mlir.constant(0xFF800000 : f32) : f32
// CHECK: llvm.bitcast %{{[^ ]+}} : f32 to f32
// CHECK: llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32)>
// CHECK: llvm.insertvalue %{{[^ ]+}}, %{{[^ ]+}}[0] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32)>
// CHECK: nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK: llvm.mul %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: nvvm.read.ptx.sreg.tid.x : i32
// CHECK: llvm.and %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: llvm.urem %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: ttg.warp_id {omitUniformHint}
// CHECK: llvm.shl %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: llvm.or %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: llvm.xor %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: llvm.add %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: llvm.extractvalue %{{[^ ]+}}[0] : !llvm.struct<(i32, i32, i32, i32, i32, i32, i32, i32)>
// CHECK: llvm.icmp "slt" %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: llvm.getelementptr %{{[^ ]+}}[%{{[^ ]+}}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
// CHECK: llvm.insertelement %{{[^ ]+}}, %{{[^ ]+}}[%{{[^ ]+}} : i32] : vector<1xf32>
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att operand_attrs = [] "mov.u32 $0, $4;\0A\09mov.u32 $1, $5;\0A\09mov.u32 $2, $6;\0A\09mov.u32 $3, $7;\0A\09@$9 ld.global.v4.b32 { $0, $1, $2, $3 }, [ $8 + 0 ];", "=r,=r,=r,=r,r,r,r,r,l,b" %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}} : (i32, i32, i32, i32, !llvm.ptr<1>, i1) -> !llvm.struct<(i32, i32, i32, i32)>
// CHECK: llvm.extractelement %{{[^ ]+}}[%{{[^ ]+}} : i32] : vector<1xf32>
// CHECK: llvm.intr.maxnum(%{{[^ ]+}}, %{{[^ ]+}}) : (f32, f32) -> f32
// CHECK: nvvm.shfl.sync bfly %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}} : i32 -> i32
// CHECK: llvm.mlir.addressof @global_smem : !llvm.ptr<3>
// CHECK: llvm.lshr %{{[^ ]+}}, %{{[^ ]+}} : i32
// CHECK: nvvm.barrier
// CHECK: llvm.load %{{[^ ]+}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK: llvm.fsub %{{[^ ]+}}, %{{[^ ]+}} : f32
// CHECK: llvm.fmul %{{[^ ]+}}, %{{[^ ]+}} : f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"(%{{[^ ]+}}) : (f32) -> f32
// CHECK: llvm.fadd %{{[^ ]+}}, %{{[^ ]+}} : f32
// CHECK: llvm.return

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.shared = 16 : i32, ttg.target = "cuda:90", ttg.tensor_memory_size = 0 : i32, "ttg.threads-per-warp" = 32 : i32, "ttg.total-num-warps" = 4 : i32, "ttng.two-ctas" = false} {
  tt.func public @softmax(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %columns: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %cst = arith.constant dense<0xFF800000> : tensor<1024xf32, #blocked>
    %row = tt.get_program_id x : i32
    %row_0 = arith.muli %row, %columns : i32
    %offsets = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #blocked>
    %inside = tt.splat %columns : i32 -> tensor<1024xi32, #blocked>
    %inside_1 = arith.cmpi slt, %offsets, %inside : tensor<1024xi32, #blocked>
    %x = tt.addptr %x_ptr, %row_0 : !tt.ptr<f32>, i32
    %x_2 = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
    %x_3 = tt.addptr %x_2, %offsets : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
    %x_4 = tt.load %x_3, %inside_1, %cst : tensor<1024x!tt.ptr<f32>, #blocked>
    %x_5 = "tt.reduce"(%x_4) <{axis = 0 : i32}> ({
    ^bb0(%x_9: f32, %x_10: f32):
      %x_11 = arith.maxnumf %x_9, %x_10 : f32
      tt.reduce.return %x_11 : f32
    }) {allocation.offset = 0 : i32} : (tensor<1024xf32, #blocked>) -> f32
    %x_6 = tt.splat %x_5 : f32 -> tensor<1024xf32, #blocked>
    %x_7 = arith.subf %x_4, %x_6 : tensor<1024xf32, #blocked>
    %x_8 = math.exp %x_7 : tensor<1024xf32, #blocked>
    %0 = tt.addptr %out_ptr, %row_0 : !tt.ptr<f32>, i32
    %1 = tt.splat %0 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
    %2 = tt.addptr %1, %offsets : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
    %3 = "tt.reduce"(%x_8) <{axis = 0 : i32}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      %6 = arith.addf %arg3, %arg4 : f32
      tt.reduce.return %6 : f32
    }) {allocation.offset = 0 : i32} : (tensor<1024xf32, #blocked>) -> f32
    %4 = tt.splat %3 : f32 -> tensor<1024xf32, #blocked>
    %5 = arith.divf %x_8, %4 : tensor<1024xf32, #blocked>
    tt.store %2, %5, %inside_1 : tensor<1024x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
