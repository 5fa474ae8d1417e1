"""An array for each program of a batch, which behaves as the array of one program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from tracing.interpreter.batch.divergence import Diverged, OneAtATime, TooLarge

LARGEST = 8 << 20  # bytes of one array, over all programs of a batch

# IEEE 754 and integer arithmetic define these for each element, however many elements one call computes. Of
# others (exp, sin) NumPy's vectorised loops and their remainders may differ.
_EXACT = {
    np.add, np.subtract, np.multiply, np.divide, np.negative, np.absolute, np.sqrt, np.fmod, np.floor,
    np.ceil, np.trunc, np.rint, np.less, np.less_equal, np.greater, np.greater_equal, np.equal,
    np.not_equal, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift,
    np.logical_and, np.logical_or, np.logical_not, np.logical_xor, np.isnan, np.isinf, np.isfinite,
    np.signbit,
}  # fmt: skip
# of floats, the sign of a zero is not defined
_EXACT_ON_INTEGERS = {np.maximum, np.minimum, np.fmax, np.fmin, np.floor_divide, np.remainder}


class BatchedArray(NDArrayOperatorsMixin):
    """One array of equal shape for each program; shape, indices and axes are those of one program's array.

    NumPy's functions accept it. What they compute has the bits, and the order of axes in memory, that calls
    with one program's array after another would give. A function without a faster implementation here is
    called so. Arrays that are equal in all programs stay ordinary arrays, and mix with these.

    Where Python needs one value (`if`, `range`, `.item()`), it must be equal in all programs: raises Diverged
    otherwise. Raises TooLarge if an array would exceed LARGEST bytes.
    """

    __slots__ = ("each",)

    def __init__(self, each: npt.NDArray[Any]) -> None:
        """each -- [programs, *shape]"""
        require_size(each.shape, each.itemsize)
        self.each = each

    # ---- of one program's array

    @property
    def programs(self) -> int:
        """The number of programs."""
        return len(self.each)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.each.shape[1:]

    @property
    def ndim(self) -> int:
        return self.each.ndim - 1

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.each.dtype

    @property
    def itemsize(self) -> int:
        return self.each.itemsize

    @property
    def T(self) -> BatchedArray:  # noqa: N802  (numpy's name)
        return self.transpose()

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[BatchedArray]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, key: Any) -> BatchedArray:
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, (BatchedArray, np.ndarray, list)) for part in parts):
            raise OneAtATime("indexes a block by another one")
        index = (slice(None), *parts)
        return BatchedArray(self.each[index])

    # ---- one value, equal in all programs

    def item(self) -> Any:
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        values = self.each.reshape(-1)
        bits = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
        if (bits != bits[0]).any():
            raise Diverged(values)
        return values[0].item()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __array__(self, *options: object, **keywords: object) -> npt.NDArray[Any]:
        raise OneAtATime("uses a function that needs one program's array")

    # ---- the same values in another form

    def astype(self, dtype: npt.DTypeLike) -> BatchedArray:
        target = np.dtype(dtype)
        # out of range, the result depends on the instruction
        if self.dtype.kind == "f" and target.kind in "iu":
            result: BatchedArray = each_program(np.ndarray.astype, self, target)
            return result
        return BatchedArray(self.each.astype(target))

    def view(self, dtype: npt.DTypeLike) -> BatchedArray:
        if np.dtype(dtype).itemsize != self.itemsize:
            result: BatchedArray = each_program(np.ndarray.view, self, dtype)
            return result
        return BatchedArray(self.each.view(dtype))

    def copy(self) -> BatchedArray:
        return BatchedArray(self.each.copy())

    def reshape(self, *shape: Any) -> BatchedArray:
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return BatchedArray(self.each.reshape(self.programs, *wanted))

    def flatten(self) -> BatchedArray:
        return self.reshape(-1).copy()

    def squeeze(self) -> BatchedArray:
        return self.reshape([length for length in self.shape if length != 1])

    def transpose(self, *axes: Any) -> BatchedArray:
        given = axes[0] if len(axes) == 1 else axes or None
        order = range(self.ndim)[::-1] if given is None else [axis % self.ndim for axis in given]
        return BatchedArray(self.each.transpose(0, *(axis + 1 for axis in order)))

    def all(self) -> BatchedArray:
        return BatchedArray(np.all(self.each.reshape(self.programs, -1), axis=1, keepdims=True)[:, 0])

    def any(self) -> BatchedArray:
        return BatchedArray(np.any(self.each.reshape(self.programs, -1), axis=1, keepdims=True)[:, 0])

    def aligned(self, ndim: int) -> npt.NDArray[Any]:
        """[programs, 1, ..., *shape], `ndim` axes after the first: broadcasts as one program's array does."""
        index = (slice(None), *(None,) * (ndim - self.ndim))
        return self.each[index]

    # ---- numpy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        function = getattr(ufunc, method)
        exact = ufunc in _EXACT or (
            ufunc in _EXACT_ON_INTEGERS and not any(_is_floating(operand) for operand in inputs)
        )
        if ufunc is np.matmul and method == "__call__":  # calls BLAS for one matrix after another
            return BatchedArray(function(*_aligned(inputs), **options))
        if method != "__call__" or options or not exact:
            return each_program(function, *inputs, **options)
        return _together(function, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        together = _FUNCTIONS.get(function)
        if together is None:
            return each_program(function, *args, **options)
        return together(*args, **options)


def require_size(shape: tuple[int, ...], itemsize: int) -> None:
    """Raise TooLarge if an array with the shape [programs, ...] has more than LARGEST bytes."""
    needed = math.prod(shape) * itemsize
    if needed > LARGEST and shape[0] > 1:
        raise TooLarge(needed, LARGEST)


def each_program(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function of arrays for one program after another, and join its results."""
    count = programs_of((args, options))
    if count is None:
        return function(*args, **options)
    results = [function(*_of(args, index), **_of(options, index)) for index in range(count)]
    if isinstance(results[0], tuple):
        return tuple(stacked(list(column)) for column in zip(*results, strict=True))
    return stacked(results)


def programs_of(value: Any) -> int | None:
    """The number of programs of the batched arrays in a structure of arguments; None: there is none."""
    if isinstance(value, BatchedArray):
        return value.programs
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return next((count for count in map(programs_of, parts) if count is not None), None)


def _of(value: Any, index: int) -> Any:
    if isinstance(value, BatchedArray):
        return value.each[index]
    if isinstance(value, dict):
        return {name: _of(one, index) for name, one in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_of(one, index) for one in value)
    return value


def stacked(results: list[Any]) -> BatchedArray:
    """The arrays of all programs, of equal shape."""
    # the axes of one program's array keep their order in memory: later sums depend on it
    first = np.asarray(results[0])
    order = sorted(range(first.ndim), key=lambda axis: -abs(first.strides[axis]))
    if order == list(range(first.ndim)):
        return BatchedArray(np.stack(results))
    data = np.stack([np.transpose(result, order) for result in results])
    return BatchedArray(data.transpose(0, *(order.index(axis) + 1 for axis in range(first.ndim))))


def _is_floating(operand: Any) -> bool:
    dtype = getattr(operand, "dtype", None)
    return isinstance(operand, float) if dtype is None else dtype.kind not in "iub"


def _together(function: Callable[..., Any], *operands: Any) -> Any:
    arrays = _aligned(operands)
    shape = np.broadcast_shapes(*map(np.shape, arrays))
    require_size(shape, max(one.itemsize for one in operands if isinstance(one, BatchedArray)))
    return BatchedArray(function(*arrays))


def _aligned(operands: Sequence[Any]) -> list[Any]:
    # arrays that broadcast as those of one program do
    ndim = max(one.ndim if isinstance(one, BatchedArray) else np.ndim(one) for one in operands)
    return [one.aligned(ndim) if isinstance(one, BatchedArray) else one for one in operands]


def _broadcast_to(array: BatchedArray, shape: Any, **options: Any) -> BatchedArray:
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    return BatchedArray(np.broadcast_to(array.aligned(len(wanted)), (array.programs, *wanted)))


def _expand_dims(array: BatchedArray, axis: int) -> BatchedArray:
    return BatchedArray(np.expand_dims(array.each, axis % (array.ndim + 1) + 1))


def _where(condition: Any, *values: Any) -> Any:
    return _together(np.where, condition, *values) if values else each_program(np.where, condition)


def _moveaxis(array: BatchedArray, source: int, target: int) -> BatchedArray:
    return BatchedArray(np.moveaxis(array.each, source % array.ndim + 1, target % array.ndim + 1))


def _equal_in_all(function: Callable[..., Any]) -> Callable[..., Any]:
    def filled(array: Any, *values: Any, **options: Any) -> Any:
        if programs_of((values, options)) is not None:
            return each_program(function, array, *values, **options)
        return function(array.each[0], *values, **options)

    return filled


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.broadcast_to: _broadcast_to,
    np.expand_dims: _expand_dims,
    np.moveaxis: _moveaxis,
    np.transpose: lambda array, axes=None: array.transpose(*([axes] if axes is not None else [])),
    np.reshape: lambda array, shape: array.reshape(shape),
    np.ndim: lambda array: array.ndim,
    np.shape: lambda array: array.shape,
    np.ones_like: _equal_in_all(np.ones_like),
    np.zeros_like: _equal_in_all(np.zeros_like),
    np.empty_like: _equal_in_all(np.empty_like),
    np.full_like: _equal_in_all(np.full_like),
}
