"""Results of floating-point operations as another correct implementation may round them.

A compiler contracts `x * y + z` to one rounding, approximates exp and division, and sums in another order.
Where each result may as well be a number next to it, what a kernel leaves varies as much as rounding allows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracing.interpreter.batch.batched_array import BatchedArray
from tracing.interpreter.floats import as_single, is_bf16, rounded, widened
from tracing.upstream.triton.interpreter import TensorHandle

TF32 = 2.0**-10  # the distance of numbers with which tensor cores multiply float32
_SUM = 2.0**-21  # of the root of the sum of squares: the error of a sum of float32, whatever its order
# absolute errors (CUDA C++ Programming Guide, intrinsic functions; PTX ISA, sin.approx and lg2.approx)
_APPROXIMATE = {np.sin: 2.0**-20, np.cos: 2.0**-20, np.log: 2.0**-21, np.log2: 2.0**-21}
_BESSEL = re.compile(r"__nv_[jy][01n]f?")
_OF_BESSEL = {4: 2.2e-6, 8: 5e-12}  # by the bytes of a number
_EXACT = {np.negative, np.abs, np.floor, np.ceil, np.fmod, np.clip}
_CHECKED = {np.add, np.subtract, np.multiply}  # often exact
_ULPS = 4  # of functions that are approximated
_OF_LIBRARY = 16  # of libdevice's


class OtherRoundings:
    """Changes each result at random, by what a GPU may compute otherwise."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def of(self, result: Any, function: Any, operands: Sequence[Any]) -> Any:
        """The result of NumPy's `function`, or of another one, of some handles."""
        if function in _EXACT or not _is_floating(result):
            return result
        numbers, value = [_wide(one) for one in operands], _wide(result)
        errors = _eps(result) * np.abs(value)
        if function in (np.exp, np.exp2):  # x * log2(e) is rounded
            errors = errors * (2 + np.abs(numbers[0]))
        elif function in _APPROXIMATE:
            errors = _ULPS * errors + _APPROXIMATE[function]
        elif function in _CHECKED and result.data.dtype != np.float64:
            errors = np.where(function(*numbers) == value, 0.0, errors)
        elif function is np.divide:  # a product with the reciprocal, which powers of 2 have
            errors = np.where(np.abs(np.frexp(numbers[1])[0]) == 0.5, 0.0, errors)
        elif function not in _CHECKED:
            errors = _ULPS * errors
        for number in numbers:  # a choice, or a sum with 0
            errors = np.where(number == value, 0.0, errors)
        return self._within(result, errors)

    def of_library(self, result: Any, symbol: str) -> Any:
        """The result of a function of libdevice."""
        if not _is_floating(result):
            return result
        errors = _OF_LIBRARY * _eps(result) * np.abs(_wide(result))
        if _BESSEL.fullmatch(symbol):
            errors = errors + _OF_BESSEL[result.data.dtype.itemsize]
        return self._within(result, errors)

    def of_product(self, result: Any, a: Any, b: Any) -> Any:
        """The product of two blocks, added to a third one."""
        if not _is_floating(result):
            return result
        size = np.sqrt(np.matmul(_wide(a) ** 2, _wide(b) ** 2))
        return self._within(result, size * (TF32 if a.data.dtype == np.float32 else _SUM))

    def _within(self, handle: Any, errors: Any) -> Any:
        if not is_bf16(handle):
            return TensorHandle(self._moved(handle.data, errors), handle.dtype.scalar)
        single = widened(handle)
        return rounded(TensorHandle(self._moved(single.data, errors), single.dtype.scalar))

    def _moved(self, data: Any, errors: Any) -> Any:
        batched = isinstance(data, BatchedArray)
        signs = self._random.choice((-1.0, 1.0), data.each.shape if batched else data.shape)
        shift: Any = BatchedArray(signs) if batched else signs
        return np.where(np.isfinite(data), data + errors * shift, data).astype(data.dtype)


def _is_floating(handle: Any) -> bool:
    return is_bf16(handle) or handle.data.dtype.kind == "f"


def _eps(handle: Any) -> float:
    return 2.0**-7 if is_bf16(handle) else float(np.finfo(handle.data.dtype).eps)


def _wide(handle: Any) -> Any:
    small = handle.data.dtype.itemsize < 4  # perhaps bit patterns
    return (as_single(handle) if small else handle.data).astype(np.float64)
