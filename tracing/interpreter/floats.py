"""Floats that numpy lacks: bfloat16, whose arrays hold bit patterns, and float8."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import triton.language as tl

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


def as_float8(data: Any, dtype: torch.dtype) -> Any:
    """Bit patterns of float8 nearest to an array of float32."""
    # Upstream rounds halves up and wraps around; the device saturates (PTX ISA, cvt.rn.satfinite).
    limit = torch.finfo(dtype).max
    return torch.from_numpy(np.array(data)).clamp(-limit, limit).to(dtype).view(torch.uint8).numpy()
