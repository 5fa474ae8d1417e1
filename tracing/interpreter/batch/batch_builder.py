"""The operations of Triton's interpreter on handles whose arrays are batched."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from tracing.interpreter.batch.batched_array import BatchedArray, require_size, stacked
from tracing.interpreter.batch.divergence import OneAtATime
from tracing.upstream.triton.interpreter import InterpreterBuilder, TensorHandle


def for_each_program(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a builder, called for one program after another where an operand is batched."""

    @functools.wraps(method)
    def called(self: Any, *operands: Any, **options: Any) -> Any:
        given = (*operands, *options.values())
        count = _programs(given)
        if count is None:
            return method(self, *operands, **options)
        results = []
        for index in range(count):
            own = _of(given, index)
            named = dict(zip(options, own[len(operands) :], strict=True))
            results.append(method(self, *own[: len(operands)], **named))
        return TensorHandle(stacked([result.data for result in results]), results[0].dtype)

    return called


def for_one_program(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a builder, whose effects must come in the order of programs."""

    @functools.wraps(method)
    def called(self: Any, *operands: Any, **options: Any) -> Any:
        if self.in_batch:
            raise OneAtATime(f"calls {method.__name__}")
        return method(self, *operands, **options)

    return called


class BatchBuilder(InterpreterBuilder):  # type: ignore[misc, unused-ignore]
    """Triton's builder, most of whose methods accept a BatchedArray for an array."""

    in_batch = False  # True while a launch is executed in batches, also of one program: all must be undoable

    def create_get_program_id(self, axis: int) -> Any:
        index = self.grid_idx[axis]
        return TensorHandle(
            index if isinstance(index, BatchedArray) else np.array([index], np.int32), tl.int32
        )

    def create_splat(self, kind: Any, scalar: Any) -> Any:
        if scalar.data.dtype == np.bool_:  # else a mask of integers, which Triton 3.9 refuses
            scalar = TensorHandle(scalar.data, tl.int1)
        operands = kind, scalar
        count = _programs(operands)
        if count is None:
            return super().create_splat(*operands)
        one = super().create_splat(*_of(operands, 0))
        (filling,) = (operand.data for operand in operands if _programs(operand) is not None)
        require_size((count, *one.data.shape), one.data.itemsize)
        data = np.empty((count, *one.data.shape), one.data.dtype)
        data[...] = filling.aligned(one.data.ndim)
        return TensorHandle(BatchedArray(data), one.dtype)

    def create_masked_load(self, *operands: Any, **options: Any) -> Any:
        if self.in_batch and (options.get("is_volatile") or operands[-1] is True):
            raise OneAtATime("waits for memory to change")  # which a program of the same batch may change
        return super().create_masked_load(*operands, **options)

    def create_dot(self, *operands: Any) -> Any:
        if any(operand.dtype.primitive_bitwidth == 8 for operand in operands[:2]):  # upstream copies bytes
            return _dot_of_each(self, *operands)
        return super().create_dot(*operands)


_FOR_EACH_PROGRAM = (
    "create_unsplat",
    "create_umulhi",
    "create_erf",
    "create_fma",
    "create_fp_to_fp",
    "create_histogram",
    "create_dot_scaled",
)
_dot_of_each = for_each_program(InterpreterBuilder.create_dot)
_FOR_ONE_PROGRAM = (
    "create_print",
    "create_atomic_cas",
    "create_atomic_rmw",
    "create_atomic_load",
    "create_atomic_store",
    "create_atomic_poll",
)
for _names, _wrapper in ((_FOR_EACH_PROGRAM, for_each_program), (_FOR_ONE_PROGRAM, for_one_program)):
    for _name in _names:
        if hasattr(InterpreterBuilder, _name):  # not every release has each of them
            setattr(BatchBuilder, _name, _wrapper(getattr(InterpreterBuilder, _name)))


def _programs(value: Any) -> int | None:
    if isinstance(value, TensorHandle):
        return value.data.programs if isinstance(value.data, BatchedArray) else None
    if isinstance(value, (tuple, list)):
        return next((count for count in map(_programs, value) if count is not None), None)
    return None


def _of(value: Any, index: int) -> Any:
    if isinstance(value, TensorHandle):
        return TensorHandle(value.data.each[index], value.dtype) if _programs(value) is not None else value
    if type(value) in (tuple, list):
        return type(value)(_of(one, index) for one in value)
    return value
