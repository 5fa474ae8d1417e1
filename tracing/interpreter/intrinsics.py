"""CUDA's integer, cast and rounding-mode intrinsics, on numpy arrays.

Source: CUDA libdevice user's guide; PTX ISA. Where Triton's PTX has `.ftz`, subnormals of float32 are zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracing.interpreter import directed_rounding
from tracing.interpreter.conversions import as_integer, fused

_Function = Callable[..., Any]
_WHOLE: Mapping[str, _Function] = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}


def flushed(value: Any) -> Any:
    """The array with zeros, of the same sign, for the subnormals of float32."""
    if value.dtype != np.float32:
        return value
    return np.where(np.abs(value) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), value), value)


def with_flush(function: _Function) -> _Function:
    """The function, whose operands and result have no subnormals of float32."""
    return lambda *operands: flushed(function(*map(flushed, operands)))


# ---- bits


def _bits(x: Any) -> Any:  # [..., bits], the lowest first
    parts = np.ascontiguousarray(x)[..., None].view(np.uint8)
    return np.unpackbits(parts, axis=-1, bitorder="little")


def _first_set(bits: Any, otherwise: int) -> Any:
    return np.where(bits.any(-1), bits.argmax(-1), otherwise)


def _reversed(x: Any) -> Any:
    return np.packbits(_bits(x)[..., ::-1], axis=-1, bitorder="little").view(x.dtype)[..., 0]


def _leading_zeros(x: Any) -> Any:
    bits = _bits(x)
    return _first_set(bits[..., ::-1], bits.shape[-1])


def _byte_perm(x: Any, y: Any, selector: Any) -> Any:
    parts = np.concatenate([np.ascontiguousarray(one)[..., None].view(np.uint8) for one in (x, y)], axis=-1)
    numbers = (selector[..., None] >> np.arange(0, 16, 4)) & 7
    return np.take_along_axis(parts, numbers, axis=-1).view(x.dtype)[..., 0]


def _wrapping(function: _Function) -> _Function:
    # computes with Python's integers, and returns as many of the lowest bits as the first operand has
    def computed(*operands: Any) -> Any:
        width = operands[0].dtype.itemsize
        exact = function(*(operand.astype(object) for operand in operands))
        return (exact & ((1 << 8 * width) - 1)).astype(f"u{width}").view(operands[0].dtype)

    return computed


def _high(x: Any, y: Any) -> Any:
    return np.asarray((x.astype(object) * y.astype(object)) >> 8 * x.dtype.itemsize).astype(x.dtype)


def _low_24(x: Any) -> Any:
    return (x & 0x7FFFFF) - (x & 0x800000)


def _join(high: Any, low: Any) -> Any:
    return np.stack([low, high], axis=-1).view(np.float64)[..., 0]


_BITS: Mapping[str, _Function] = {
    "popc": lambda x: _bits(x).sum(-1),
    "clz": _leading_zeros,
    "ffs": lambda x: _first_set(_bits(x), -1) + 1,
    "brev": _reversed,
    "byte_perm": _byte_perm,
    "mul24": _wrapping(lambda x, y: _low_24(x) * _low_24(y)),
    "umul24": _wrapping(lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF)),
    "sad": _wrapping(lambda x, y, z: np.abs(x - y) + z),
    "hadd": _wrapping(lambda x, y: (x + y) >> 1),
    "rhadd": _wrapping(lambda x, y: (x + y + 1) >> 1),
    "llabs": np.abs,
    "hiloint2double": _join,
    "double2loint": lambda x: np.ascontiguousarray(x).view(np.int32)[..., ::2].reshape(x.shape),
    "double2hiint": lambda x: np.ascontiguousarray(x).view(np.int32)[..., 1::2].reshape(x.shape),
}
_SAME: Mapping[str, str] = {
    "popcll": "popc", "clzll": "clz", "ffsll": "ffs", "brevll": "brev", "usad": "sad", "uhadd": "hadd",
    "urhadd": "rhadd",
}  # fmt: skip
_CASTS: Mapping[str, type] = {
    "int_as_float": np.float32,
    "uint_as_float": np.float32,
    "float_as_int": np.int32,
    "float_as_uint": np.int32,
    "longlong_as_double": np.float64,
    "double_as_longlong": np.int64,
}


def _viewed(dtype: type, x: Any) -> Any:
    return x.view(dtype)


# ---- rounding modes


def _to_integer(mode: str, target: str, x: Any) -> Any:
    return as_integer(_WHOLE[mode](flushed(x)), target).view(target.replace("u", "i"))


def _with_mode(mode: str) -> dict[str, _Function]:
    named = directed_rounding.operation
    table = {f"double2float_{mode}": with_flush(named("convert", mode, np.float32))}
    for name in ("add", "sub", "mul", "div", "rcp", "sqrt"):
        table[f"f{name}_{mode}"] = table[f"d{name}_{mode}"] = with_flush(named(name, mode))
    table[f"fma_{mode}"] = table[f"fmaf_{mode}"] = with_flush(named("fma", mode))
    for source in ("int", "uint", "ll", "ull"):
        table[f"{source}2float_{mode}"] = named("convert", mode, np.float32)
        table[f"{source}2double_{mode}"] = named("convert", mode, np.float64)
    for source in ("float", "double"):
        for target, dtype in (("int", "i4"), ("uint", "u4"), ("ll", "i8"), ("ull", "u8")):
            table[f"{source}2{target}_{mode}"] = functools.partial(_to_integer, mode, dtype)
    return table


def _fma(x: Any, y: Any, z: Any) -> Any:
    return directed_rounding.fma(x, y, z) if x.dtype == np.float64 else fused(x, y, z)


INTRINSICS: Mapping[str, _Function] = {
    **_BITS,
    **{name: _BITS[same] for name, same in _SAME.items()},
    **{name: _high for name in ("mulhi", "umulhi", "mul64hi", "umul64hi")},
    **{name: functools.partial(_viewed, dtype) for name, dtype in _CASTS.items()},
    **{name: one for mode in directed_rounding.MODES for name, one in _with_mode(mode).items()},
    "frsqrt_rn": directed_rounding.operation("rsqrt", "rn"),
    "fma": with_flush(_fma),
}
