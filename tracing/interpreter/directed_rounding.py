"""Arithmetic that is rounded once, in a given direction, as CUDA's `__fadd_rz` and its relatives.

Results are computed as fractions: exact, but 10 us for each element.

Source: IEEE 754-2019, 4.3; CUDA Math API, intrinsics.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

MODES = ("rn", "rz", "ru", "rd")  # to the nearest, toward zero, up, down
_Function: TypeAlias = Callable[..., Any]


def rounded(exact: Fraction, dtype: npt.DTypeLike, mode: str) -> Any:
    """The number of a format that a fraction other than 0 becomes; beyond the largest one, it or infinity."""
    kind: Any = np.dtype(dtype).type
    format = np.finfo(dtype)
    top = Fraction(2) ** format.maxexp * (1 - Fraction(1, 2 << (format.nmant + 2)))  # rounds to infinity
    exact = max(min(exact, top), -top)
    near = _nearby(exact, kind)
    if _fraction(near) == exact:
        return near
    low = near if _fraction(near) < exact else np.nextafter(near, kind(-math.inf))
    high = np.nextafter(low, kind(math.inf))
    if mode == "rz":
        mode = "rd" if exact > 0 else "ru"
    if mode == "rn":
        below, above = exact - _fraction(low), _fraction(high) - exact
        even = int(low.view(f"u{low.itemsize}")) % 2 == 0
        mode = "rd" if below < above or (below == above and even) else "ru"
    return np.copysign(low if mode == "rd" else high, kind(1 if exact > 0 else -1))


def _nearby(exact: Fraction, kind: Any) -> Any:
    try:
        return kind(float(exact))
    except OverflowError:
        return kind(math.inf if exact > 0 else -math.inf)


def _fraction(value: Any) -> Fraction:
    # infinity is what the next number would be
    if np.isfinite(value):
        return Fraction(float(value))
    return Fraction(1 if value > 0 else -1) * (1 << int(np.finfo(value.dtype).maxexp))


def _square_root(x: Fraction) -> Fraction:
    # raises ValueError below 0; 64 bits, and one that is set if there are more
    shift = max(0, 65 + (x.denominator.bit_length() - x.numerator.bit_length()) // 2)
    square, rest = divmod(x.numerator << 2 * shift, x.denominator)
    root = math.isqrt(square)
    return Fraction(2 * root + (rest > 0 or root * root != square), 2 << shift)


def _fused(x: Any, y: Any, z: Any) -> Any:
    wide = [one.astype(np.longdouble) for one in (x, y, z)]  # the product of finite numbers is finite
    return (wide[0] * wide[1] + wide[2]).astype(x.dtype)


# of fractions, and of numpy's numbers: of operands that are not finite, and of results that are 0
_OPERATIONS: Mapping[str, tuple[_Function, _Function]] = {
    "add": (lambda x, y: x + y, np.add),
    "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
    "div": (lambda x, y: x / y, np.divide),
    "rcp": (lambda x: 1 / x, np.reciprocal),
    "sqrt": (_square_root, np.sqrt),
    "rsqrt": (lambda x: _square_root(1 / x), lambda x: 1 / np.sqrt(x)),
    "fma": (lambda x, y, z: x * y + z, _fused),
    "convert": (lambda x: x, lambda x: x),
}
_SUMS = ("add", "sub", "fma")


def _computed(name: str, mode: str, dtype: Any, *operands: Any) -> Any:
    exact, nearest = _OPERATIONS[name]
    if all(map(np.isfinite, operands)):
        try:
            result = exact(*(Fraction(operand.item()) for operand in operands))
        except (ZeroDivisionError, ValueError):
            return nearest(*operands)
        if result:
            return rounded(result, dtype, mode)
    if name in _SUMS and mode == "rd":  # numbers that cancel give -0
        opposite = [-one for one in operands]
        return -nearest(*((operands[0], *opposite[1:]) if name == "fma" else opposite))
    return nearest(*operands)


def operation(name: str, mode: str, dtype: npt.DTypeLike | None = None) -> _Function:
    """A function of arrays that computes an operation in a rounding mode.

    name  -- a key of _OPERATIONS
    dtype -- that of the result; None: that of the operands
    """

    def computed(*arrays: Any) -> Any:
        columns = np.broadcast_arrays(*arrays)
        target = np.dtype(dtype or columns[0].dtype)
        rows = zip(*(column.ravel() for column in columns), strict=True)
        values = [_computed(name, mode, target, *operands) for operands in rows]
        return np.array(values, target).reshape(columns[0].shape)

    return computed


fma = functools.partial(operation, "fma", "rn")()
