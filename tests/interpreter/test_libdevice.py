"""CUDA's libdevice on the virtual GPU, against Python's own arithmetic and the PTX that Triton generates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

from tracing.virtual_gpu import virtual_gpu

INF, NAN = float("inf"), float("nan")
TINY = 2.0**-126  # the smallest normal float32


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@triton.jit
def one(x, out, FUNCTION: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, FUNCTION(tl.load(x + at)))


@triton.jit
def two(x, y, out, FUNCTION: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, FUNCTION(tl.load(x + at), tl.load(y + at)))


@triton.jit
def three(x, y, z, out, FUNCTION: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, FUNCTION(tl.load(x + at), tl.load(y + at), tl.load(z + at)))


def called(name: str, out: torch.dtype, *operands: Any) -> list[Any]:
    result = torch.zeros(operands[0].shape, dtype=out)
    kernel: Any = (one, two, three)[len(operands) - 1]
    kernel[(1,)](*operands, result, getattr(libdevice, name), operands[0].numel())
    values: list[Any] = result.tolist()
    return values


def f32(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float32)


def f64(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64)


def i32(*values: int) -> Any:
    return torch.tensor(values, dtype=torch.int32)


def i64(*values: int) -> Any:
    return torch.tensor(values, dtype=torch.int64)


# ---- bits

INTEGERS = (0, 1, -1, 0x12345678, -(2**31), 2**30, 6, -6)


@pytest.mark.parametrize(("made", "width"), [(i32, 32), (i64, 64)])
def test_bits_are_counted_from_both_ends(made: Any, width: int) -> None:
    x = made(*INTEGERS)
    texts = [f"{value % 2**width:0{width}b}" for value in INTEGERS]

    assert called("popc", torch.int32, x) == [text.count("1") for text in texts]
    assert called("clz", torch.int32, x) == [width - len(text.lstrip("0")) for text in texts]
    assert called("ffs", torch.int32, x) == [text[::-1].find("1") + 1 for text in texts]
    reversed_bits = called("brev", x.dtype, x)
    assert [value % 2**width for value in reversed_bits] == [int(text[::-1], 2) for text in texts]


def test_products_and_means_of_integers() -> None:
    x, y = i32(-5, 2**31 - 1, 7, -(2**31)), i32(3, 2**31 - 1, -2, 2**31 - 1)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))

    assert called("mulhi", torch.int32, x, y) == [(a * b) >> 32 for a, b in pairs]
    assert called("hadd", torch.int32, x, y) == [(a + b) >> 1 for a, b in pairs]
    assert called("rhadd", torch.int32, x, y) == [(a + b + 1) >> 1 for a, b in pairs]
    assert called("mul24", torch.int32, i32(0x7FFFFF, 1 << 24), i32(-2, 5)) == [-0xFFFFFE, 0]
    assert called("mulhi", torch.int64, i64(-5, 2**62), i64(3, 2**62)) == [-1, 2**60]
    z = i32(1, 2, 3, 4).view(torch.uint32)
    assert called("sad", torch.int32, i32(-5, 5, 0, 1), i32(5, -5, 0, 2), z) == [11, 12, 3, 5]


def test_byte_perm_takes_three_bits_of_each_selector() -> None:
    x, y, selector = i32(0x33221100, 0x33221100), i32(0x77665544, 0x77665544), i32(0x7531, 0xC840)

    assert called("byte_perm", torch.int32, x, y, selector) == [0x77553311, 0x44004400]


def test_bits_are_taken_for_numbers() -> None:
    assert called("float_as_int", torch.int32, f32(1.0, -0.0)) == [0x3F800000, -(2**31)]
    assert called("int_as_float", torch.float32, i32(0x3F800000, 0x40000000)) == [1, 2]
    assert called("double_as_longlong", torch.int64, f64(1.0, -0.0)) == [0x3FF << 52, -(2**63)]
    assert called("double2hiint", torch.int32, f64(1.0, -0.0)) == [0x3FF00000, -(2**31)]
    assert called("double2loint", torch.int32, f64(1 + 2.0**-52, 1.0)) == [1, 0]
    assert called("hiloint2double", torch.float64, i32(0x3FF00000, 0), i32(1, 0)) == [1 + 2.0**-52, 0]


# ---- rounding modes

STEP = 2.0**-23
THIRD = {
    "rn": 0.3333333432674408,
    "rz": 0.3333333134651184,
    "ru": 0.3333333432674408,
    "rd": 0.3333333134651184,
}


@pytest.mark.parametrize("mode", ["rn", "rz", "ru", "rd"])
def test_results_are_rounded_in_the_direction_of_the_name(mode: str) -> None:
    up, down = mode == "ru", mode in ("rz", "rd")
    assert called(f"div_{mode}", torch.float32, f32(1.0, -1.0), f32(3.0, 3.0))[0] == THIRD[mode]
    assert called(f"rcp_{mode}", torch.float32, f32(3.0, 0.0)) == [THIRD[mode], INF]
    added = called(
        f"add_{mode}", torch.float32, f32(1.0, -1.0, 3e38, 0.0), f32(STEP / 4, -STEP / 4, 3e38, 0.0)
    )
    assert added[:2] == [1 + STEP * up, -1 - STEP * (mode == "rd")]
    assert (added[2] == INF) is not down
    assert called(f"mul_{mode}", torch.float32, f32(1 + STEP, 2.0), f32(1 + STEP, 4.0)) == [
        1 + 2 * STEP + STEP * up,
        8,
    ]
    fused = called(
        f"fma_{mode}", torch.float32, f32(1 + STEP, 1.0), f32(1 + STEP, 1.0), f32(-1 - 2 * STEP, -1.0)
    )
    assert fused == [STEP * STEP, 0]
    root = called(f"sqrt_{mode}", torch.float64, f64(2.0, -1.0))
    assert root[0] == (math.nextafter(math.sqrt(2), 0) if down else math.sqrt(2)) and math.isnan(root[1])


def test_sums_that_cancel_are_minus_zero_if_rounded_down() -> None:
    for mode in ("rn", "rz", "ru", "rd"):
        (zero, _) = called(f"add_{mode}", torch.float32, f32(1.0, 0.0), f32(-1.0, 0.0))
        assert math.copysign(1, zero) == (-1 if mode == "rd" else 1)


def test_subnormals_of_float32_are_zeros_as_in_ptx_with_ftz() -> None:
    assert called("add_rn", torch.float32, f32(TINY / 2, TINY), f32(TINY / 2, -TINY / 4)) == [0, TINY]
    assert called("float2int_ru", torch.int32, f32(TINY / 2, TINY)) == [0, 1]
    assert called("ceil", torch.float32, f32(TINY / 2, TINY)) == [0, 1]
    assert called("add_rn", torch.float64, f64(2.0**-1074, 0.0), f64(2.0**-1074, 0.0)) == [2.0**-1073, 0]


HALVES = (2.5, -2.5, 3e9, NAN, -INF, 0.75)


@pytest.mark.parametrize(
    ("mode", "whole"),
    [("rn", [2, -2, 1]), ("rz", [2, -2, 0]), ("ru", [3, -2, 1]), ("rd", [2, -3, 0])],
)
def test_floats_become_integers_by_the_mode_of_the_name(mode: str, whole: list[int]) -> None:
    x, highest = f32(*HALVES, 0.0, 0.0), -(2**31)

    signed = called(f"float2int_{mode}", torch.int32, x)
    assert [*signed[:2], signed[5]] == whole
    assert signed[2:5] == [2**31 - 1, 0, highest]
    assert called(f"double2int_{mode}", torch.int32, x.double())[3] == highest
    assert called(f"float2ll_{mode}", torch.int64, x)[2:5] == [3000000000, -(2**63), -(2**63)]
    assert called(f"float2uint_{mode}", torch.int32, x)[1:5] == [0, 3000000000 - 2**32, 0, 0]


def test_integers_become_floats_by_the_mode_of_the_name() -> None:
    x = i32(2**24 + 1, -(2**24) - 1)

    assert called("int2float_rn", torch.float32, x) == [2**24, -(2**24)]
    assert called("int2float_ru", torch.float32, x) == [2**24 + 2, -(2**24)]
    assert called("int2float_rd", torch.float32, x) == [2**24, -(2**24) - 2]
    assert called("double2float_rz", torch.float32, f64(1 + 2.0**-24 * 1.5, -1e300)) == [
        1,
        -(2 - STEP) * 2.0**127,
    ]
    assert called("ll2double_ru", torch.float64, i64(2**53 + 1, 5)) == [2**53 + 2, 5]


# ---- other functions


def test_special_values_are_those_of_cuda() -> None:
    assert called("llrint", torch.int64, f32(2.5, NAN, INF, 3.5)) == [2, -(2**63), 2**63 - 1, 4]
    assert called("ilogb", torch.int32, f32(0.0, INF, 8.0, 0.3)) == [-(2**31), 2**31 - 1, 3, -2]
    assert called("logb", torch.float32, f32(0.0, INF, 8.0, 0.3)) == [-INF, INF, 3, -2]
    assert called("fdim", torch.float32, f32(INF, 3.0), f32(INF, 1.0)) == [0, 2]
    assert called("ldexp", torch.float32, f32(2.0**-20, 1.0), i32(130, -3)) == [2.0**110, 0.125]
    assert called("remainder", torch.float32, f32(5.0, -7.5), f32(3.0, 2.0)) == [-1, 0.5]
    assert called("fmod", torch.float32, f32(5.5, -7.5), f32(3.0, 2.0)) == [2.5, -1.5]
    assert called("nearbyint", torch.float32, f32(2.5, -0.5)) == [2, 0]
    assert called("sinpi", torch.float32, f32(1e6, 0.5)) == [0, 1]
    assert called("cospi", torch.float64, f64(1.0, 0.5)) == [-1, 0]
    assert called("fma", torch.float64, f64(1 + 2.0**-52, INF), f64(1 - 2.0**-52, 1.0), f64(-1.0, 1.0)) == [
        -(2.0**-104),
        INF,
    ]


def test_norms_and_roots() -> None:
    assert called("norm3d", torch.float32, f32(1.0, 3e30), f32(2.0, 0.0), f32(2.0, 0.0)) == pytest.approx(
        [3, 3e30]
    )
    assert called("rhypot", torch.float32, f32(3.0, 1.0), f32(4.0, 0.0)) == pytest.approx([0.2, 1])
    assert called("rcbrt", torch.float64, f64(-8.0, 27.0)) == pytest.approx([-0.5, 1 / 3])
    assert called("erfcinv", torch.float64, f64(1e-10, 1.5)) == pytest.approx(
        [4.572824967389486, -0.4769362762044699]
    )
