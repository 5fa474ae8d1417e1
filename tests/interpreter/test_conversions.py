"""Conversions, minimum, maximum and fma on the virtual GPU: the results of the PTX that Triton generates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tracing.upstream.triton.interpreter import InterpreterBuilder
from tracing.virtual_gpu import virtual_gpu

INF, NAN = float("inf"), float("nan")


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@triton.jit
def cast(x, out, DTYPE: tl.constexpr, ROUNDING: tl.constexpr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + at, tl.load(x + at).to(DTYPE, fp_downcast_rounding=ROUNDING))


_TRITON = {
    torch.int8: tl.int8,
    torch.uint8: tl.uint8,
    torch.int16: tl.int16,
    torch.uint16: tl.uint16,
    torch.int32: tl.int32,
    torch.uint32: tl.uint32,
    torch.int64: tl.int64,
    torch.uint64: tl.uint64,
    torch.float16: tl.float16,
    torch.bfloat16: tl.bfloat16,
    torch.float32: tl.float32,
    torch.float8_e4m3fn: tl.float8e4nv,
    torch.float8_e5m2: tl.float8e5,
}


def converted(x: Any, dtype: torch.dtype, rounding: str | None = None, programs: int = 2) -> Any:
    out = torch.zeros(x.shape, dtype=dtype)
    cast[(programs,)](x, out, _TRITON[dtype], rounding, x.numel() // programs)
    return out


# ---- to integers ----

OUT_OF_RANGE = (300.0, -1.0, 3e9, -3e9, NAN, INF, -INF, -0.9)
HIGHEST = 1 << 63


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.int8, [44, -1, -1, 0, 0, -1, 0, 0]),  # the low byte of cvt.rzi.s16
        (torch.uint8, [44, 0, 255, 0, 0, 255, 0, 0]),
        (torch.int16, [300, -1, 32767, -32768, 0, 32767, -32768, 0]),
        (torch.int32, [300, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31), 0]),
        (torch.uint32, [300, 0, 3000000000, 0, 0, 2**32 - 1, 0, 0]),
        (torch.int64, [300, -1, 3000000000, -3000000000, -HIGHEST, HIGHEST - 1, -HIGHEST, 0]),
        (torch.uint64, [300, 0, 3000000000, 0, HIGHEST, 2 * HIGHEST - 1, 0, 0]),
    ],
)
def test_floats_out_of_range_become_the_nearest_integer(dtype: torch.dtype, expected: list[int]) -> None:
    assert converted(torch.tensor(OUT_OF_RANGE), dtype).tolist() == expected


def test_nan_of_float64_becomes_the_integer_with_the_highest_bit() -> None:
    x = torch.full((2,), NAN, dtype=torch.float64)

    assert converted(x, torch.int32).tolist() == [-(2**31)] * 2
    assert converted(x, torch.uint32).tolist() == [2**31] * 2


# ---- to bfloat16, rounded once ----


def test_float64_and_int64_become_bfloat16_in_one_rounding() -> None:
    half = 1 + 2.0**-8  # between two bfloat16
    x = torch.tensor([half, half + 2.0**-40, half - 2.0**-40, NAN], dtype=torch.float64)
    integers = torch.tensor([257 << 40, (257 << 40) + 1, -(257 << 40) - 1, (257 << 54) + 1])

    torch.testing.assert_close(
        converted(x, torch.bfloat16).double(),
        torch.tensor([1, 1 + 2.0**-7, 1, NAN]).double(),
        equal_nan=True,
        rtol=0,
        atol=0,
    )
    assert converted(integers, torch.bfloat16).long().tolist() == [
        256 << 40,
        258 << 40,
        -(258 << 40),
        258 << 54,
    ]
    assert converted(integers[3:].view(torch.uint64), torch.bfloat16, programs=1).item() == 258 << 54


def test_rounding_toward_zero() -> None:
    x = torch.tensor([1 + 2.0**-7 - 2.0**-20, -70000.0, 1e-7, INF])

    assert converted(x, torch.bfloat16, "rtz").tolist()[0] == 1
    assert converted(x, torch.float16, "rtz").tolist()[1:] == [-65504, 2.0**-24, INF]
    assert converted(x, torch.float8_e5m2, "rtz").float().tolist() == [1, -57344, 0, INF]


# ---- float8 ----


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
@pytest.mark.parametrize("target", [torch.float16, torch.float32])
def test_all_codes_of_float8_are_decoded(dtype: torch.dtype, target: torch.dtype) -> None:
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)

    torch.testing.assert_close(converted(codes, target), codes.to(target), equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize(("dtype", "largest"), [(torch.float8_e4m3fn, 448), (torch.float8_e5m2, 57344)])
@pytest.mark.parametrize("source", [torch.float16, torch.bfloat16, torch.float32])
def test_float8_saturates_and_keeps_nan(dtype: torch.dtype, largest: int, source: torch.dtype) -> None:
    x = torch.tensor([INF, -INF, NAN, -NAN], dtype=source)

    out = converted(x, dtype)
    assert out.float().tolist()[:2] == [largest, -largest]
    assert out.view(torch.uint8).tolist()[2:] == [0x7F, 0x7F]


def test_infinity_of_float8e5_becomes_a_number_of_bfloat16() -> None:
    codes = torch.tensor([0x7C, 0xFD, 0x01, 0xBC], dtype=torch.uint8).view(torch.float8_e5m2)

    # shr.b32 3, mul.rn.bf16x2 2**112
    assert converted(codes, torch.bfloat16).tolist() == [65536, -81920, 2.0**-16, -1]


@triton.jit
def product(x, y, out, N: tl.constexpr):
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tile = rows * N + columns
    tl.store(out + tile, tl.dot(tl.load(x + tile), tl.load(y + tile)))


def test_products_of_float8_keep_subnormals() -> None:
    x = torch.eye(32).to(torch.float8_e5m2)
    y = torch.arange(1024).remainder(120).to(torch.uint8).view(torch.float8_e5m2).view(32, 32)
    out = torch.zeros(32, 32)
    product[(1,)](x, y, out, 32)

    assert torch.equal(out, y.float())


@triton.jit
def scaled_product(x, scales, y, out, FORMAT: tl.constexpr, M: tl.constexpr, K: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, K)
    a = tl.load(x + rows[:, None] * K + columns[None, :])
    b = tl.load(y + columns[:, None] * M + rows[None, :])
    s = tl.load(scales + rows[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    tl.store(out + rows[:, None] * M + rows[None, :], tl.dot_scaled(a, s, FORMAT, b, None, "bf16"))


@pytest.mark.skipif(
    not hasattr(InterpreterBuilder, "create_dot_scaled"), reason="Triton 3.6 interprets no tl.dot_scaled"
)
@pytest.mark.parametrize(
    ("name", "dtype"), [("e5m2", torch.float8_e5m2), ("e4m3", torch.float8_e4m3fn), ("bf16", torch.bfloat16)]
)
def test_scaled_products_keep_subnormals_of_float8_and_large_bfloat16(name: str, dtype: torch.dtype) -> None:
    codes = torch.arange(2048).remainder(120).to(torch.uint8)
    x = codes.bfloat16() * 1e5 if name == "bf16" else codes.view(dtype)
    scales = torch.full((32, 2), 128, dtype=torch.uint8)
    y = torch.zeros(64, 32, dtype=torch.bfloat16)
    y[:32] = torch.eye(32) * 1e5
    out = torch.zeros(32, 32)
    scaled_product[(1,)](x, scales, y, out, name, 32, 64)

    assert torch.equal(out, 2 * x.view(32, 64)[:, :32].float() * y[0, 0].float())


# ---- minimum, maximum, clamp, fma ----


@triton.jit
def extremes(x, y, out, PROPAGATE: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, tl.minimum(a, b, PROPAGATE))
    tl.store(out + N + at, tl.maximum(a, b, PROPAGATE))
    tl.store(out + 2 * N + at, tl.clamp(a, b, b, PROPAGATE))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("propagates", [False, True])
def test_minus_zero_is_less_than_zero_and_nan_propagates_if_asked(dtype: Any, propagates: bool) -> None:
    x = torch.tensor([-0.0, 0.0, -0.0, NAN, 1.0, NAN, 2.0, 0.0], dtype=dtype)
    y = torch.tensor([0.0, -0.0, -0.0, 1.0, NAN, NAN, 3.0, 0.0], dtype=dtype)
    out = torch.zeros(3, 8, dtype=dtype)
    extremes[(1,)](x, y, out, tl.PropagateNan.ALL if propagates else tl.PropagateNan.NONE, 8)

    one = NAN if propagates else 1.0
    assert [list(map(str, row)) for row in out.tolist()] == [
        list(map(str, row))
        for row in (
            [-0.0, -0.0, -0.0, one, one, NAN, 2.0, 0.0],
            [0.0, 0.0, -0.0, one, one, NAN, 3.0, 0.0],
            [0.0, -0.0, -0.0, one, one, NAN, 3.0, 0.0],
        )
    ]


@triton.jit
def largest(x, out, N: tl.constexpr):
    tl.store(out, tl.max(tl.load(x + tl.arange(0, N)), 0))
    tl.store(out + 1, tl.min(tl.load(x + tl.arange(0, N)), 0))


def test_reductions_order_zeros() -> None:
    out = torch.ones(2)
    for x in (torch.tensor([-0.0, 0.0, -0.0, -0.0]), torch.tensor([0.0, 0.0, 0.0, -0.0])):
        largest[(1,)](x, out, 4)
        assert out.signbit().tolist() == [False, True]


@triton.jit
def fused(x, y, z, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.fma(tl.load(x + at), tl.load(y + at), tl.load(z + at)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_fma_rounds_once(dtype: torch.dtype) -> None:
    step = torch.finfo(dtype).eps
    x = torch.tensor([1 + step, 1 + step, INF, 2.0], dtype=dtype)
    z = torch.tensor([-1 - 2 * step, step * step / 2, -INF, 3.0], dtype=dtype)
    out = torch.zeros(4, dtype=dtype)
    fused[(1,)](x, x, z, out, 4)

    expected = [step * step, float(np.float64(1 + 2 * step)), NAN, 7.0]
    torch.testing.assert_close(out, torch.tensor(expected, dtype=dtype), equal_nan=True, rtol=0, atol=0)
