"""Floats that numpy lacks: bfloat16, whose arrays hold bit patterns, and float8."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import triton.language as tl

from tracing.interpreter.batch.batched_array import each_program
from tracing.upstream.triton.interpreter import TensorHandle

FLOAT8: Mapping[Any, torch.dtype] = {tl.float8e4nv: torch.float8_e4m3fn, tl.float8e5: torch.float8_e5m2}


def is_bf16(value: object) -> bool:
    """True if a handle holds the bit patterns of bfloat16."""
    # The result of a comparison has boolean data and the dtype of the operands: check both.
    if not isinstance(value, TensorHandle):
        return False
    return bool(value.data.dtype == np.uint16 and value.dtype.scalar == tl.bfloat16)


def widened(value: Any) -> Any:
    """The same numbers as float32; other values are returned unchanged."""
    if not is_bf16(value):
        return value
    bits = value.data.astype(np.uint32) << np.uint32(16)
    return TensorHandle(bits.view(np.float32), tl.float32)


def rounded(value: Any) -> Any:
    """The nearest bfloat16, halves to even, of float32; other values are returned unchanged."""
    if value.data.dtype != np.float32:
        return value
    bits = value.data.view(np.uint32).astype(np.uint64)
    nearest_even = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet_nan = (bits >> 16) | 0x40
    return TensorHandle(
        np.where(np.isnan(value.data), quiet_nan, nearest_even).astype(np.uint16), tl.bfloat16
    )


def through_float32(operation: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a builder, computing in float32 where an operand is bfloat16."""

    @functools.wraps(operation)
    def wrapped(self: Any, *operands: Any) -> Any:
        if not any(map(is_bf16, operands)):
            return operation(self, *operands)
        return rounded(operation(self, *map(widened, operands)))

    return wrapped


def as_float8(data: Any, target: Any) -> Any:
    """Bit patterns of float8 nearest to an array of floats, halves to even.

    A number out of range, or infinite, becomes the largest finite one (PTX ISA, cvt.rn.satfinite).
    """
    dtype = FLOAT8[target]
    limit = torch.finfo(dtype).max
    wide = torch.from_numpy(data.astype(np.float32))
    bits = wide.clamp(-limit, limit).to(dtype).view(torch.uint8).numpy()
    return np.where(np.isnan(data), np.uint8(0x7F), bits)


def from_float8(data: Any, source: Any, target: Any) -> Any:
    """An array of bit patterns of float8 as float32; they are to become numbers of the format `target`."""
    bits = torch.from_numpy(np.array(data))
    numbers = bits.view(FLOAT8[source]).float().numpy()
    if source != tl.float8e5 or target != tl.bfloat16:
        return numbers
    # Triton shifts the bits and multiplies by 2**112: infinity and NaN become numbers.
    shifted = (bits.view(torch.int8).to(torch.int32).numpy() << 21) & 0x0FFFFFFF
    finite = np.where(bits >= 0x80, -1, 1) * (shifted.view(np.float32) * np.float32(2.0**112))
    return np.where(np.isfinite(numbers), numbers, finite.astype(np.float32))


def as_half(value: Any) -> Any:
    """The numbers of a handle of float8 as float16, which represents them all; other values unchanged."""
    source = value.dtype.scalar
    if source not in FLOAT8:
        return value
    data = each_program(from_float8, value.data, source, tl.float16).astype(np.float16)
    return TensorHandle(data, tl.float16)


def as_single(value: Any) -> Any:
    """The numbers of a handle of float8, float16 or bfloat16, as an array of float32."""
    return widened(as_half(value)).data.astype(np.float32)


def toward_zero(data: Any, target: Any) -> Any:
    """An array of float32 or float16 rounded toward zero to a smaller format: float16, bfloat16, float8e5."""
    if target == tl.bfloat16:
        bits = data.astype(np.float32).view(np.uint32) >> np.uint32(16)
        return np.where(np.isnan(data), 0x7FFF, bits).astype(np.uint16)
    half = data.astype(np.float16)
    bits = half.view(np.uint16)
    bits = np.where(np.abs(half.astype(data.dtype)) > np.abs(data), bits - np.uint16(1), bits)
    if target == tl.float8e5:  # its bits are the first 8 of float16
        return np.where(np.isnan(data), 0x7F, bits >> 8).astype(np.uint8)
    return bits.view(np.float16)
