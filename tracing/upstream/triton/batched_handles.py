"""What Triton's interpreter does with an array that is not NumPy's own, but takes part in NumPy's protocols.

The programs of a launch are executed together on such arrays (`tracing.interpreter.batch`).
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
import triton.language as tl
from numpy.lib.mixins import NDArrayOperatorsMixin
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from tracing.upstream.contract import require
from tracing.upstream.patch import replaced
from tracing.upstream.triton.libtriton import native_interpreter


class _Array(NDArrayOperatorsMixin):
    """Two arrays that act as one."""

    def __init__(self, *each: Any) -> None:
        self.each = each
        self.dtype, self.itemsize, self.shape = each[0].dtype, each[0].itemsize, each[0].shape

    def astype(self, dtype: Any) -> _Array:
        return _Array(*(one.astype(dtype) for one in self.each))

    def _called(self, function: Any, arguments: Any, options: Any) -> _Array:
        own = [[one.each[i] if isinstance(one, _Array) else one for one in arguments] for i in range(2)]
        return _Array(*(function(*one, **options) for one in own))

    def __array_ufunc__(self, function: Any, method: str, *arguments: Any, **options: Any) -> _Array:
        return self._called(function, arguments, options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> _Array:
        return self._called(function, arguments, options)


@functools.cache
def failure() -> str:
    """Why programs cannot be executed together with this Triton; empty: they can."""
    try:
        contract()
    except Exception as error:  # whatever a private object does after an upgrade is the answer here
        return f"{type(error).__name__}: {error}"
    return ""


def contract() -> None:
    """Raise Broken or another error if the interpreter needs NumPy's own arrays."""
    builder: Any = InterpreterBuilder()
    builder.set_grid_dim(2, 1, 1)
    builder.grid_idx = (1, 0, 0)
    require(
        builder.create_get_program_id(0).data.shape == (1,), "a program's index in an array of one element"
    )
    numbers = TensorHandle(_Array(np.zeros(4, np.int32), np.ones(4, np.int32)), tl.int32)
    one = TensorHandle(np.ones(1, np.int32), tl.int32)
    both = builder.create_select(
        builder.create_icmpSLT(numbers, one), numbers, builder.create_add(numbers, one)
    )
    require(
        [list(one) for one in both.data.each] == [[0] * 4, [2] * 4], "operations that call NumPy's functions"
    )

    pointers = TensorHandle(_Array(np.zeros(4, np.uint64), np.zeros(4, np.uint64)), tl.pointer_type(tl.int32))
    pointers = builder.create_addptr(pointers, numbers)
    calls: list[tuple[Any, ...]] = []

    def native(*arguments: Any) -> Any:
        calls.append(arguments)
        return arguments[0].astype(np.int32)

    with replaced(native_interpreter, "load", native), replaced(native_interpreter, "store", native):
        loaded = _called(builder.create_load, pointers)
        _called(builder.create_store, pointers, loaded)
    require(
        [len(call) for call in calls] == [4, 3],
        "load(pointers, mask, other, dtype) and store(pointers, value, mask)",
    )
    require(all(call[0] is pointers.data for call in calls), "loads and stores of the handle's own array")


def _called(method: Any, *operands: Any) -> Any:
    # of cache policies, which Triton 3.9 joined into one, none is asked for
    return method(*operands, *[None] * (len(inspect.signature(method).parameters) - len(operands)))
