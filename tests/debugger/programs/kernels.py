"""Kernels that compile without a GPU."""

import os

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TYPES = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def silu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    loaded = tl.load(x + at, mask=at < n)
    tl.store(out + at, loaded * tl.sigmoid(loaded), mask=at < n)


def compiled(kernel):
    types = {name: kind for name, kind in TYPES.items() if name in kernel.arg_names}
    source = ASTSource(kernel, types, constexprs={"BLOCK": 256})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})


def compile_add(_=None):
    print("hash", compiled(add).metadata.hash, flush=True)
    return os.getpid()


def compile_silu(_=None):
    compiled(silu)
