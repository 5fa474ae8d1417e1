"""Four kernels that take different paths through the compiler: no loop, reductions, a pipelined dot, both."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row + offsets, mask=inside, other=float("-inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row + offsets, x / tl.sum(x, axis=0), mask=inside)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        total = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), total)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(tl.float16))


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, keys, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.arange(0, WIDTH)
    q = tl.load(q_ptr + rows[:, None] * WIDTH + columns[None, :])
    highest = tl.full((BLOCK,), float("-inf"), tl.float32)
    weight = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK, WIDTH), tl.float32)
    for start in range(0, keys, BLOCK):
        key = start + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + key[None, :] * WIDTH + columns[:, None])
        scores = tl.dot(q, k)
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        scale = tl.exp(highest - higher)
        scores = tl.exp(scores - higher[:, None])
        weight = weight * scale + tl.sum(scores, axis=1)
        v = tl.load(v_ptr + key[:, None] * WIDTH + columns[None, :])
        total = tl.dot(scores.to(tl.float16), v, total * scale[:, None])
        highest = higher
    tl.store(out_ptr + rows[:, None] * WIDTH + columns[None, :], (total / weight[:, None]).to(tl.float16))


_FLOATS = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "columns": "i32"}
_HALVES = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr", "q_ptr", "k_ptr", "v_ptr", "out_ptr"), "*fp16")
_SIZES = {"N": "i32", "K": "i32", "keys": "i32"}
KERNELS: dict[str, tuple[Any, dict[str, str], dict[str, int]]] = {  # function, types of arguments, constants
    "vector_add": (vector_add, _FLOATS, {"BLOCK": 1024}),
    "softmax": (softmax, _FLOATS, {"BLOCK": 1024}),
    "matmul": (matmul, _HALVES | _SIZES, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}),
    "attention": (attention, _HALVES | _SIZES, {"BLOCK": 64, "WIDTH": 64}),
}


def source(name: str) -> ASTSource:
    """A kernel as `triton.compile` takes it; its arguments are multiples of 16, so that loads are wide."""
    function, types, constants = KERNELS[name]
    signature = {arg: "constexpr" if arg in constants else types[arg] for arg in function.arg_names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, arg in enumerate(signature) if arg not in constants}
    return ASTSource(function, signature=signature, constexprs=constants, attrs=aligned)


def compiled(name: str, target: str) -> dict[str, bytes | str]:
    """Every artefact of a kernel compiled from its Python source, with no cache."""
    with tempfile.TemporaryDirectory() as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(Path(folder))
        kernel = triton.compile(source(name), target=TARGETS[target])
        return dict(kernel.asm.items())
