"""Python's operators on tensors in a kernel, and numbers at which NumPy differs from a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import triton
import triton.language as tl

from tracing.virtual_gpu import virtual_gpu


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@triton.jit
def logic(x, flags, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n)
    negated = not (value > 0)
    both = value > -1 and value < 1
    either = value < -2 or value > 2
    tl.store(flags + at, negated.to(tl.int32) + 2 * both.to(tl.int32) + 4 * either.to(tl.int32), at < n)


@triton.jit
def clamped(x, y, n, lower, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, min(max(tl.load(x + at, at < n), lower), 0.5), at < n)


@triton.jit
def optional(x, y, factor: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    last = tl.program_id(0)
    if y is not None and not (last > min(3, BLOCK)) and ((factor is not None and factor > 1) or not factor):
        tl.store(y + at, value * 2)


@triton.jit
def extremes(x, values, indices, BLOCK: tl.constexpr):
    value, index = tl.max(tl.load(x + tl.arange(0, BLOCK)), 0, return_indices=True)
    tl.store(values, value)
    tl.store(indices, index)


def test_logic_is_elementwise() -> None:
    x, flags = torch.linspace(-3, 3, 100), torch.empty(100, dtype=torch.int32)

    logic[(1,)](x, flags, 100, BLOCK=128)

    wanted = ~(x > 0) + 2 * ((x > -1) & (x < 1)).int() + 4 * ((x < -2) | (x > 2)).int()
    assert torch.equal(flags, wanted.int())


def test_extrema_are_elementwise() -> None:
    x, y = torch.linspace(-3, 3, 100), torch.empty(100)

    clamped[(1,)](x, y, 100, -0.25, BLOCK=128)

    assert torch.equal(y, x.clamp(-0.25, 0.5))


@pytest.mark.parametrize(("factor", "stored"), [(None, True), (0, True), (1, False), (2, True)])
def test_operands_that_are_not_needed_are_not_evaluated(factor: int | None, stored: bool) -> None:
    x, y = torch.ones(16), torch.zeros(16)

    optional[(1,)](x, None, factor, BLOCK=16)
    optional[(1,)](x, y, factor, BLOCK=16)

    assert torch.equal(y, x * 2 if stored else y * 0)


def test_a_reduction_of_nothing_but_nan_is_nan() -> None:
    x, value, index = torch.full((16,), torch.nan), torch.empty(1), torch.empty(1, dtype=torch.int32)

    extremes[(1,)](x, value, index, BLOCK=16)

    assert value.isnan().all() and 0 <= int(index) < 16


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min"])
def test_extrema_of_inductor_return_the_first_nan_as_eager_does(name: str) -> None:
    x = torch.randn(4, 12)
    x[0, 0] = x[1, 3] = x[1, 7] = x[2, 11] = torch.nan
    x[3] = torch.nan

    compiled = torch.compile(lambda x: getattr(x, name)(1))(x)

    eager = getattr(x, name)(1)
    pairs = [(compiled, eager)] if name.startswith("arg") else zip(compiled, eager, strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64, torch.bool])
def test_bits_are_inverted(dtype: torch.dtype) -> None:
    x = torch.arange(256).to(dtype)

    assert torch.equal(torch.compile(torch.bitwise_not)(x), ~x)


@triton.jit
def less_two(x):
    x -= 2
    x //= 2
    return x


@triton.jit
def two_constants():
    return -7, -9


@triton.jit
def assigned(o, f, p, n):
    a, b = -7, 3
    tl.store(o, a // 2)
    a, b = 1, 1
    for _ in range(60):
        a, b = b, a + b
    tl.store(o + 1, a)
    scale, shift = 0.1, 0.2
    tl.store(f + tl.arange(0, 4), tl.load(p + tl.arange(0, 4)) * scale + shift)
    n -= 17
    tl.store(o + 2, n // 2)
    tl.store(o + 3, (-7 if n < 3 else 7) // 2)
    tl.store(o + 4, tl.full((), 100, tl.int8) + (100 if n < 3 else 4))
    tl.store(o + 5, less_two(-7))
    first, second = two_constants()
    tl.store(o + 6, first // 2)
    tl.store(o + 7, second % 4)


@triton.jit
def bits(o, n):
    yes, no = True, False
    tl.store(o, (yes + yes).to(tl.int32))
    tl.store(o + 1, (~yes).to(tl.int32) + (no - yes).to(tl.int32))
    tl.store(o + 2, (-(n > 0)).to(tl.int32))
    tl.store(o + 3, tl.umulhi(n - 11, n - 11))


@triton.jit
def summed(o, p, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * 2 + tl.arange(0, 2)[None, :]
    tl.store(o + tl.arange(0, 2), tl.sum(tl.load(p + at), 0))


def test_what_is_assigned_is_a_tensor_with_the_arithmetic_of_a_gpu() -> None:
    o, f, p = torch.zeros(8, dtype=torch.int64), torch.zeros(4), torch.tensor([1, 2, 3, 4]).half()

    assigned[(1,)](o, f, p, 10)

    assert o.tolist() == [-3, 764848393, -3, -3, 200, -4, -3, -1]
    torch.testing.assert_close(f, p.float() * 0.1 + 0.2)


def test_numbers_of_one_bit_wrap_and_the_high_half_of_a_product_is_unsigned() -> None:
    o = torch.zeros(4, dtype=torch.int32)

    bits[(1,)](o, 10)

    assert o.tolist() == [0, 1, 1, -2]


def test_a_sum_of_float16_loses_no_small_terms() -> None:
    o = torch.zeros(2, dtype=torch.float16)

    summed[(1,)](o, torch.ones(4096, 2, dtype=torch.float16), N=4096)

    assert o.tolist() == [4096, 4096]
