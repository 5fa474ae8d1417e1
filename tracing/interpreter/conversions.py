"""Conversions between number formats as a GPU computes them, each rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def as_integer(data: Any, dtype: npt.DTypeLike) -> Any:
    """Floats as integers of a dtype, toward zero.

    Numbers out of range become the nearest integer. NaN becomes 0; from float64, and to 64 bits, it becomes
    the integer whose highest bit is set. An integer of 8 bits is the low byte of one of 16 bits, as no
    instruction converts to 8 bits.

    Source: PTX ISA, cvt.rzi, and the PTX that Triton generates.
    """
    target = np.dtype(dtype)
    limits = np.iinfo(f"{target.kind}{max(2, target.itemsize)}")
    whole = np.trunc(data.astype(np.float64))
    low, high = whole < float(limits.min), whole >= float(limits.max + 1)
    result = np.where(low | high | np.isnan(whole), 0.0, whole).astype(limits.dtype)
    result = np.where(low, limits.dtype.type(limits.min), result)
    result = np.where(high, limits.dtype.type(limits.max), result)
    if data.dtype == np.float64 or target.itemsize == 8:
        highest = np.array(1 << (limits.bits - 1), f"u{limits.bits // 8}").view(limits.dtype)
        result = np.where(np.isnan(whole), highest, result)
    return result.astype(target)


def to_odd(data: Any) -> Any:
    """Numbers as float32: the last bit of one that is not exact is set.

    Rounding the result to a format of 22 bits or fewer gives what rounding `data` itself gives.

    Source: S. Boldo and G. Melquiond, Emulation of FMA and correctly rounded sums (IEEE Trans. Comput. 2008).
    """
    exact = _as_double(data)
    single = exact.astype(np.float32)
    back = single.astype(np.float64)
    bits = single.view(np.int32)
    inexact = (back != exact) & ~np.isnan(exact) & ((bits & 1) == 0)
    away = np.where(np.abs(exact) > np.abs(back), np.int32(1), np.int32(-1))
    return np.where(inexact, bits + away, bits).view(np.float32)


def _as_double(data: Any) -> Any:
    if data.dtype.kind not in "iu" or data.dtype.itemsize < 8:
        return data.astype(np.float64)
    # 11 bits more than float64 has: they become the last bit that it keeps
    lost = data.dtype.type(0x7FF)
    odd = (data & ~lost) | data.dtype.type(0x800)
    far = (data >> data.dtype.type(53)).astype(np.int64)
    return np.where(((far != 0) & (far != -1)) & ((data & lost) != 0), odd, data).astype(np.float64)


def fused(x: Any, y: Any, z: Any) -> Any:
    """x * y + z of float16 or float32, rounded once (PTX ISA, fma.rn)."""
    product, addend = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)  # exact
    total = product + addend
    # what the sum lost (D. E. Knuth, TAOCP 4.2.2, theorem B)
    part = total - product
    lost = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    even = np.isfinite(total) & (lost != 0) & ((bits & 1) == 0)
    away = np.where((lost > 0) == (total > 0), np.int64(1), np.int64(-1))
    return np.where(even, bits + away, bits).view(np.float64).astype(x.dtype)
