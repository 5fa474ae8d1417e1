"""Reductions and scans with any combine function, vectorised."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl

from tracing.interpreter.batch.batched_array import BatchedArray
from tracing.interpreter.builder import BUILDER, SEMANTIC
from tracing.upstream.triton.interpreter import (
    ReduceOps,
    ReduceScanOpInterface,
    ScanOps,
    TensorHandle,
    is_sum,
    numpy_dtype,
)


class _Combining(ReduceScanOpInterface):  # type: ignore[misc, unused-ignore]
    def to_tensor(self, ret: Any, dtype: Any) -> Any:
        if isinstance(ret, BatchedArray) and not ret.shape:  # upstream would make a list of it an array
            return tl.tensor(TensorHandle(ret.reshape(1).astype(numpy_dtype(dtype)), dtype.scalar), dtype)
        return super().to_tensor(ret, dtype)

    def combine(self, left: list[Any], right: list[Any], dtypes: list[Any]) -> list[Any]:
        operands = [self.to_tensor(data, dtype) for data, dtype in zip(left + right, dtypes * 2, strict=True)]
        results = self.combine_fn(*operands)
        results = results if isinstance(results, (tuple, tl.tuple)) else (results,)
        pairs = zip(map(SEMANTIC.to_tensor, results), dtypes, strict=True)
        values = [SEMANTIC.cast(result, dtype).handle.data for result, dtype in pairs]
        return [
            np.broadcast_to(value, old.shape).astype(old.dtype)
            for value, old in zip(values, left, strict=True)
        ]

    def apply_impl(self, tensors: tuple[Any, ...]) -> Any:
        # numpy's own sum, max and cumsum would take bfloat16's bit patterns for integers.
        if BUILDER.roundings or any(tensor.dtype == tl.bfloat16 for tensor in tensors):
            return self.generic(tensors)
        return super().apply_impl(tensors)

    def generic(self, tensors: tuple[Any, ...]) -> list[Any]:
        raise NotImplementedError


class Reduce(_Combining, ReduceOps):  # type: ignore[misc, unused-ignore]
    """Combines adjacent elements log2(n) times, in order: the function need not be commutative."""

    def apply_impl(self, tensors: tuple[Any, ...]) -> Any:
        # numpy's functions skip NaN, and raise where there is nothing else; -0 equals +0 to them; numpy adds
        # rows of float16 one by one, so that small terms are lost, and small integers as large ones
        dtype, data = tensors[0].dtype.scalar, tensors[0].handle.data
        if dtype.is_int() and dtype.primitive_bitwidth < 32 and is_sum(self.combine_fn):
            return self.generic(tensors)
        needs_order = dtype.primitive_bitwidth < 32 or BUILDER.roundings or self._needs_order(data)
        if dtype.is_floating() and needs_order:
            return self.generic(tensors)
        return super().apply_impl(tensors)

    def _needs_order(self, data: Any) -> bool:
        unordered = np.isnan(data)
        if not is_sum(self.combine_fn):
            unordered = unordered | (np.signbit(data) & (data == 0))
        return bool(unordered.any())

    def generic(self, tensors: tuple[Any, ...]) -> list[Any]:
        dtypes = [tensor.dtype for tensor in tensors]
        columns = [_axis_first(tensor.handle.data, self.axis) for tensor in tensors]
        while len(columns[0]) > 1:
            columns = self.combine([data[0::2] for data in columns], [data[1::2] for data in columns], dtypes)
        rank = tensors[0].handle.data.ndim
        return [
            self.to_tensor(self._shaped(data[0], rank), dtype)
            for data, dtype in zip(columns, dtypes, strict=True)
        ]

    def _shaped(self, data: Any, rank: int) -> Any:
        if not self.keep_dims:
            return data
        return np.reshape(data, (1,) * rank) if self.axis is None else np.expand_dims(data, self.axis)

    generic_reduce = generic


class Scan(_Combining, ScanOps):  # type: ignore[misc, unused-ignore]
    """Hillis and Steele: after step k every element covers 2**k predecessors. Shapes stay powers of two."""

    def generic(self, tensors: tuple[Any, ...]) -> list[Any]:
        dtypes = [tensor.dtype for tensor in tensors]
        columns = [_axis_first(tensor.handle.data, self.axis) for tensor in tensors]
        distance = 1
        while distance < len(columns[0]):
            combined = self.combine([np.roll(data, distance, axis=0) for data in columns], columns, dtypes)
            columns = [
                np.concatenate([old[:distance], new[distance:]])
                for old, new in zip(columns, combined, strict=True)
            ]
            distance *= 2
        restored = [np.ascontiguousarray(np.moveaxis(data, 0, self.axis)) for data in columns]
        return [self.to_tensor(data, dtype) for data, dtype in zip(restored, dtypes, strict=True)]

    generic_scan = generic

    # Upstream reverses around its own apply_impl, which the bfloat16 case does not reach.
    def apply_impl(self, tensors: tuple[Any, ...]) -> Any:
        generic = BUILDER.roundings or any(tensor.dtype == tl.bfloat16 for tensor in tensors)
        if not (self.reverse and generic):
            return super().apply_impl(tensors)
        flipped = tuple(self._flipped(tensor) for tensor in tensors)
        return [self._flipped(tensor) for tensor in self.generic(flipped)]

    def _flipped(self, tensor: Any) -> Any:
        return self.to_tensor(np.ascontiguousarray(np.flip(tensor.handle.data, self.axis)), tensor.dtype)


def _axis_first(data: Any, axis: int | None) -> Any:
    return data.reshape(-1) if axis is None else np.moveaxis(data, axis, 0)
