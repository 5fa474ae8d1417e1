"""Compute operations of arith and math, element by element."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import erf
from typing import Any

import numpy as np

from tracing.mlir.generic import Operation
from tracing.mlir.types import Type, Unknown, integer, rounded, type_of

_UNSIGNED = {np.dtype(f"int{bits}"): np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}
_COMPARE_INTEGERS = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip
_COMPARE_FLOATS: Mapping[int, Callable[[Any, Any], Any]] = {
    0: lambda a, b: np.zeros(np.broadcast(a, b).shape, bool),
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    6: lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b)),
    7: lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    8: lambda a, b: (a == b) | np.isnan(a) | np.isnan(b),
    9: lambda a, b: ~(a <= b),
    10: lambda a, b: ~(a < b),
    11: lambda a, b: ~(a >= b),
    12: lambda a, b: ~(a > b),
    13: np.not_equal,
    14: lambda a, b: np.isnan(a) | np.isnan(b),
    15: lambda a, b: np.ones(np.broadcast(a, b).shape, bool),
}


def computed(one: Operation, operands: list[Any]) -> Any:
    """The result of an operation of arith or math; raises Unknown."""
    kind = type_of(one.result_types[0])
    with np.errstate(all="ignore"):
        if one.name in ("arith.cmpi", "arith.cmpf"):
            return _compared(one, operands)
        if one.name in _CASTS:
            return rounded(_CASTS[one.name](operands[0], kind), kind)
        if one.name not in _ELEMENTWISE:
            raise Unknown(one.name)
        return rounded(_ELEMENTWISE[one.name](*map(_wide, operands)), kind)


def library(one: Operation, operands: list[Any]) -> Any:
    """The result of a function of libdevice or of ROCm's library; raises Unknown."""
    symbol = one.properties["symbol"].strip('"')
    match = re.fullmatch(r"__(?:nv|ocml)_(\w+?)(?:f|_f32|_f64)?", symbol)
    name = match[1] if match else symbol
    function = _ELEMENTWISE.get(f"math.{name}") or _LIBRARY.get(name)
    if function is None:
        raise Unknown(symbol)
    with np.errstate(all="ignore"):
        return rounded(function(*map(_wide, operands)), type_of(one.result_types[0]))


def _compared(one: Operation, operands: list[Any]) -> Any:
    predicate, (a, b) = integer(one.properties["predicate"]), operands
    if one.name == "arith.cmpf":
        return _COMPARE_FLOATS[predicate](a, b)
    if predicate >= 6:
        a, b = _unsigned(a), _unsigned(b)
    return _COMPARE_INTEGERS[predicate](a, b)


def _wide(values: Any) -> Any:
    # halves are computed in single precision, and rounded once
    result = np.asarray(values)
    return result.astype(np.float32) if result.dtype == np.float16 else result


def _unsigned(values: Any) -> Any:
    result = np.asarray(values)
    return result.view(_UNSIGNED[result.dtype]) if result.dtype in _UNSIGNED else result


def _unsigned_too(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: function(*map(_unsigned, operands))


def _divided(a: Any, b: Any) -> Any:
    b = np.where(b == 0, 1, b)
    result = np.floor_divide(a, b)
    return result + ((result < 0) & (result * b != a))


def _remainder(a: Any, b: Any) -> Any:
    b = np.where(b == 0, 1, b)
    return a - _divided(a, b) * b


def _upper_half(a: Any, b: Any) -> Any:
    bits = np.asarray(a).dtype.itemsize * 8
    return ((a.astype(object) * b.astype(object)) >> bits).astype(a.dtype)


def _safe(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(a, np.where(b == 0, 1, b))


def _shifted(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def shift(a: Any, b: Any) -> Any:
        width = np.asarray(a).dtype.itemsize * 8
        return function(a, np.clip(b, 0, width - 1))

    return shift


def _bits(values: Any, kind: Type) -> Any:
    result = np.asarray(values)
    if result.dtype.itemsize != np.dtype(kind.dtype).itemsize:
        raise Unknown("a bitcast of bf16")
    return result.view(kind.dtype)


def _integer(values: Any, kind: Type) -> Any:
    return np.trunc(np.nan_to_num(np.asarray(values, dtype=np.float64), posinf=0.0, neginf=0.0))


_CASTS: Mapping[str, Callable[[Any, Type], Any]] = {
    "arith.bitcast": _bits,
    "tt.bitcast": _bits,
    "arith.extf": lambda a, kind: a,
    "arith.truncf": lambda a, kind: a,
    "tt.fp_to_fp": lambda a, kind: a,
    "arith.extsi": lambda a, kind: -np.asarray(a).astype(np.int8) if np.asarray(a).dtype == np.bool_ else a,
    "arith.extui": lambda a, kind: _unsigned(a),
    "arith.trunci": lambda a, kind: np.asarray(a) & 1 if kind.element == "i1" else a,
    "arith.index_cast": lambda a, kind: a,
    "arith.sitofp": lambda a, kind: -np.asarray(a).astype(np.int8) if np.asarray(a).dtype == np.bool_ else a,
    "arith.uitofp": lambda a, kind: _unsigned(a),
    "arith.fptosi": _integer,
    "arith.fptoui": _integer,
}
_LIBRARY: Mapping[str, Callable[..., Any]] = {
    "fabs": np.abs,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "pow": np.power,
    "tan": np.tan,
    "isnan": np.isnan,
    "isinf": np.isinf,
}
_ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": _divided,
    "arith.remsi": _remainder,
    "arith.divui": _unsigned_too(_safe(np.floor_divide)),
    "arith.remui": _unsigned_too(_safe(np.remainder)),
    "arith.ceildivsi": lambda a, b: -_safe(np.floor_divide)(-a, b),
    "arith.floordivsi": _safe(np.floor_divide),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": _shifted(np.left_shift),
    "arith.shrsi": _shifted(np.right_shift),
    "arith.shrui": _unsigned_too(_shifted(np.right_shift)),
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minui": _unsigned_too(np.minimum),
    "arith.maxui": _unsigned_too(np.maximum),
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "tt.precise_divf": np.divide,
    "arith.remf": np.fmod,
    "arith.negf": np.negative,
    "arith.minnumf": np.fmin,
    "arith.maxnumf": np.fmax,
    "arith.minimumf": np.minimum,
    "arith.maximumf": np.maximum,
    "arith.select": lambda condition, a, b: np.where(condition, a, b),
    "tt.clampf": lambda x, low, high: np.fmin(np.fmax(x, low), high),
    "tt.mulhiui": lambda a, b: _upper_half(_unsigned(a), _unsigned(b)),
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.log": np.log,
    "math.log2": np.log2,
    "math.sqrt": np.sqrt,
    "tt.precise_sqrt": np.sqrt,
    "math.rsqrt": lambda a: 1 / np.sqrt(a),
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tanh": np.tanh,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.erf": np.vectorize(erf, otypes=[np.float64]),
    "math.fma": lambda a, b, c: a * b + c,
}
