"""Kernels of common kinds, and a launch of each: softmax, matrix product, norm, dropout, causal attention."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, rows, columns, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, at < columns, other=-float("inf"))
        power = tl.exp(value - tl.max(value, axis=0))
        tl.store(out + row * columns + at, power / tl.sum(power, axis=0), at < columns)


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    across = tl.cdiv(N, BN)
    first = pid // (GROUP * across) * GROUP
    height = min(tl.cdiv(M, BM) - first, GROUP)
    down = first + pid % (GROUP * across) % height
    rows = down * BM + tl.arange(0, BM)
    columns = pid % (GROUP * across) // height * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = a + (rows % M)[:, None] * K + inner[None, :]
    right = b + inner[:, None] * N + (columns % N)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        rest = K - k * BK
        x = tl.load(left, mask=inner[None, :] < rest, other=0.0)
        y = tl.load(right, mask=inner[:, None] < rest, other=0.0)
        total = tl.dot(x, y, total)
        left += BK
        right += BK * N
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16), inside)


@triton.jit
def layer_norm(x, weight, out, mean_of, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + at, at < columns, other=0.0)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        centred = tl.load(x + row * columns + at, at < columns, other=0.0) - mean
        squares += tl.where(at < columns, centred * centred, 0.0)
    scale = tl.rsqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_of + row, mean)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        centred = tl.load(x + row * columns + at, at < columns) - mean
        tl.store(out + row * columns + at, centred * scale * tl.load(weight + at, at < columns), at < columns)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(kept, tl.load(x + at, at < n) / (1 - p), 0.0), at < n)


@triton.jit
def attention(q, k, v, out, tokens, WIDTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    start = tl.program_id(0) * BM
    head = tl.program_id(1) * tokens * WIDTH
    rows, columns, inner = start + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, WIDTH)
    query = tl.load(q + head + rows[:, None] * WIDTH + inner[None, :])
    largest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, WIDTH), tl.float32)
    for first in range(0, start + BM, BN):
        at = first + columns
        key = tl.load(k + head + at[None, :] * WIDTH + inner[:, None])
        score = tl.where(rows[:, None] >= at[None, :], tl.dot(query, key) * 0.125, -1.0e6)
        larger = tl.maximum(largest, tl.max(score, 1))
        power = tl.math.exp2(score - larger[:, None])
        shrink = tl.math.exp2(largest - larger)
        value = tl.load(v + head + at[:, None] * WIDTH + inner[None, :])
        result = tl.dot(power.to(tl.bfloat16), value, result * shrink[:, None])
        total = total * shrink + tl.sum(power, 1)
        largest = larger
    at = head + rows[:, None] * WIDTH + inner[None, :]
    tl.store(out + at, (result / total[:, None]).to(tl.bfloat16))


def launches() -> dict[str, tuple[Any, dict[str, Any], tuple[int, int, int]]]:
    """Of each kernel: the function, the values of its arguments, and the grid."""
    torch.manual_seed(0)
    a, b = torch.randn(100, 90).half(), torch.randn(90, 70).half()
    x = torch.randn(23, 100)
    q, k, v = (torch.randn(3, 128, 32).bfloat16() for _ in range(3))
    empty = torch.empty_like
    sizes = {"M": 100, "N": 70, "K": 90, "BM": 16, "BN": 32, "BK": 32, "GROUP": 4}
    flat = {"n": x.numel(), "p": 0.3, "seed": 123, "BLOCK": 64}
    normed = {"weight": torch.randn(100), "mean_of": torch.empty(23), "columns": 100, "eps": 1e-5}
    attended = {"tokens": 128, "WIDTH": 32, "BM": 32, "BN": 16}
    return {
        "softmax": (softmax, {"x": x, "out": empty(x), "rows": 23, "columns": 100, "BLOCK": 128}, (5, 1, 1)),
        "product": (product, {"a": a, "b": b, "c": torch.empty(100, 70).half(), **sizes}, (21, 1, 1)),
        "layer norm": (layer_norm, {"x": x, "out": empty(x), **normed, "BLOCK": 32}, (23, 1, 1)),
        "dropout": (dropout, {"x": x, "out": empty(x), **flat}, (36, 1, 1)),
        "attention": (attention, {"q": q, "k": k, "v": v, "out": empty(q), **attended}, (4, 3, 1)),
    }
