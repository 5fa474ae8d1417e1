"""The layout by which the GPU kernel reads the elements of a tensor in logical order.

A contiguous tensor whose address is a multiple of 16 bytes is read linearly. Any other tensor with up to four
dimensions that cannot be merged is read through its strides, in units of 16, four or two bytes; transposed
floating-point numbers, whose rows are long, 16 rows at a time. The remaining ones (bytes with
strides, conjugate views) are copied first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import torch

from tracing.digest.columns import TILE_BYTES
from tracing.digest.words import HALF

DIMS = 4
ROWS_ACROSS = 16  # that are read together
_UNITS = 1 << 31  # of a tensor, and from its first to its last: both fit 31 bits


@dataclass(frozen=True, slots=True)
class DigestLayout:
    """Unit i = ((i0 * n1 + i1) * n2 + i2) * n3 + i3 is at i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3."""

    unit: int  # bytes: 16, 4, 2; 0: contiguous
    sizes: tuple[int, ...] = (1, 1, 1)  # n1, n2, n3
    strides: tuple[int, ...] = (0, 0, 0, 0)  # in units
    across: bool = False  # read some elements of a column together, which are adjacent in memory
    whole: bool = False  # rows that are read across are whole tiles, and their elements aligned

    @property
    def long(self) -> bool:
        """True if it is rows, each so long that half a tile contains at most one end of a row."""
        rows = self.strides[:2] == (0, 0) and self.sizes[0] == 1 and self.strides[3] == 1
        return self.unit > 0 and rows and self.sizes[2] * self.unit >= 4 * HALF

    @property
    def row_bytes(self) -> int:
        """Of its last dimension."""
        return self.sizes[2] * self.unit

    @property
    def misaligned(self) -> int:
        """The bits of an address that must be zero."""
        return 15 if self.whole else (self.unit or 16) - 1


def layout(tensor: torch.Tensor) -> DigestLayout | None:
    """The layout for reading a tensor of any strides; None: only a copy of it can be read."""
    if tensor.is_conj() or tensor.is_neg():
        return None
    if tensor.numel() == 0 or (tensor.is_contiguous() and not tensor.data_ptr() & 15):
        return DigestLayout(0)
    itemsize, address = tensor.element_size(), tensor.data_ptr()
    for unit in (16, 4, 2):
        dims = _in_units(_merged(tensor.shape, tensor.stride()), itemsize, unit)
        span = max(tensor.numel() * itemsize // unit, sum((n - 1) * stride for n, stride in dims))
        if dims and len(dims) <= DIMS and not address % unit and span < _UNITS:
            padded = [(1, 0)] * (DIMS - len(dims)) + dims
            sizes, strides = tuple(n for n, _ in padded[1:]), tuple(stride for _, stride in padded)
            floats = tensor.is_floating_point() and unit == itemsize
            across = floats and _long_across(sizes, strides, unit)
            whole = across and dims == padded[2:] and not address & 15 and _whole(sizes, strides, unit)
            return DigestLayout(unit, sizes, strides, across, whole)
    return None


def _long_across(sizes: Sequence[int], strides: Sequence[int], unit: int) -> bool:
    # transposed: elements of a column are adjacent in memory, and rows are whole words, at least a tile
    row = sizes[2] * unit
    return strides[2] == 1 < strides[3] and row >= TILE_BYTES and row % 4 == 0


def _whole(sizes: Sequence[int], strides: Sequence[int], unit: int) -> bool:
    # of a matrix: its rows are whole tiles, and elements of a column are aligned
    return sizes[1] >= ROWS_ACROSS and not (
        sizes[1] * unit & 15 or strides[3] * unit & 15 or sizes[2] * unit % TILE_BYTES
    )


def _merged(shape: Sequence[int], stride: Sequence[int]) -> list[tuple[int, int]]:
    # (size, stride) of the dimensions, outermost first; contiguous neighbours are merged
    def merge(dims: list[tuple[int, int]], dim: tuple[int, int]) -> list[tuple[int, int]]:
        size, step = dim
        if dims and dims[-1][1] == size * step:
            return [*dims[:-1], (dims[-1][0] * size, step)]
        return [*dims, dim]

    real = [(size, step) for size, step in zip(shape, stride, strict=True) if size != 1]
    return reduce(merge, real, [])


def _in_units(dims: list[tuple[int, int]], itemsize: int, unit: int) -> list[tuple[int, int]]:
    # elements that are larger than a unit are a dimension more; rows of smaller ones are counted in units
    if itemsize >= unit and unit < 16:
        parts = itemsize // unit
        return _merged(*zip(*[(n, step * parts) for n, step in dims], (parts, 1), strict=True))
    *outer, (size, step) = dims or [(1, 1)]
    each = unit // itemsize
    if step != 1 or size % each or any(outer_step % each for _, outer_step in outer):
        return []
    return [*((n, outer_step // each) for n, outer_step in outer), (size // each, 1)]
