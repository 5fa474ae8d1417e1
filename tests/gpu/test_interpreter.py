"""Kernels on a GPU and in the interpreter that stands for it: every number is equal."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from tracing.interpreter import launch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
N = 64


@triton.jit
def logic(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    negated, both, either = not (a > 0), a > 0 and b > 0, a > 1 or b < -1
    tl.store(out + at, tl.where(negated, 1.0, 0.0) + tl.where(both, 2.0, 0.0) + tl.where(either, 4.0, 0.0))


@triton.jit
def extrema(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, max(min(a, b), -0.5))


@triton.jit
def propagating(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    largest = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + at, tl.where(a == a, largest, tl.minimum(a, b)))


@triton.jit
def largest_or_nan(a, i, b, j):
    a_is_nan, b_is_nan = a != a, b != b
    equal = (a == b) | (a_is_nan & b_is_nan)
    first = (a > b) | (a_is_nan & (not b_is_nan)) | (equal & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)


@triton.jit
def reduced(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value, index = tl.reduce((tl.load(x + at), at), 0, largest_or_nan)
    tl.store(
        out + at, tl.where(at == 0, value, tl.where(at == 1, index.to(tl.float32), tl.max(tl.load(y + at))))
    )


@triton.jit
def scanned(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.associative_scan(tl.load(y + at), 0, kept, reverse=True))


@triton.jit
def kept(a, b):
    return tl.where(not (b < 0), b, a)


@triton.jit
def divided(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = at - 32, tl.where(at % 7 == 3, 5, at % 7 - 3)
    tl.store(
        out + at,
        (a // b * 100 + a % b + (a >> 1) + ((a.to(tl.uint32) >> 28) << 3).to(tl.int32)).to(tl.float32),
    )


@triton.jit
def inverted(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    small = (at * 5).to(tl.uint8)
    tl.store(
        out + at, (~small).to(tl.float32) + (small + small).to(tl.float32) + (-at).to(tl.int8).to(tl.float32)
    )


@triton.jit
def rounded(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(y + at)
    halves = a.to(tl.bfloat16).to(tl.float32) + a.to(tl.float16).to(tl.float32)
    tl.store(out + at, halves + (a * 10).to(tl.int32).to(tl.float32) + tl.floor(a) + tl.ceil(a * 3))


@triton.jit
def assigned(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = -7, 3
    scale, shift = 0.1, 0.2
    c, d = 1, 1
    for _ in range(60):
        c, d = d, c + d
    a //= 2
    value = tl.load(y + at).to(tl.float16) * scale + shift
    chosen = (-7 if tl.program_id(0) < 3 else 7) // 2
    numbers = tl.program_id(0) + a + b + chosen + c % 1000
    tl.store(out + at, value + numbers.to(tl.float32))


@triton.jit
def one_bit(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(y + at) > 0, tl.load(y + at) > 1
    flags = (a + b).to(tl.int32) + 2 * (a - b).to(tl.int32) + 4 * (-a).to(tl.int32)
    tl.store(out + at, (flags + tl.umulhi(at - 40, at - 41) % 1000).to(tl.float32))


@triton.jit
def half_sums(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    ones = tl.full((4096, BLOCK), 1.0, tl.float16)
    tl.store(out + at, tl.sum(ones, 0).to(tl.float32))


KERNELS = (
    logic, extrema, propagating, reduced, scanned, divided, inverted, rounded, assigned, one_bit, half_sums
)  # fmt: skip


def operands() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x, y = torch.randn(N), torch.randn(N) * 2
    x[5] = x[9] = torch.nan
    x[7], x[11], y[9] = torch.inf, -torch.inf, -torch.inf
    return x, y


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: one.__name__)
def test_a_gpu_gives_what_the_interpreter_gives(kernel: Any) -> None:
    x, y = operands()
    here, there = torch.zeros(N), torch.zeros(N, device="cuda")

    kernel[(1,)](x.cuda(), y.cuda(), there, BLOCK=N)
    launch(kernel, {"x": x, "y": y, "out": here, "BLOCK": N}, ["BLOCK"], (1, 1, 1))

    torch.testing.assert_close(here, there.cpu(), rtol=0, atol=0, equal_nan=True)
