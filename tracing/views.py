"""The bytes of memory that a tensor's elements occupy, and the bytes that two tensors share."""

from __future__ import annotations

import functools
import math
import re
from typing import Literal, NamedTuple, TypeAlias

from tracing.model import TensorMeta

Relation: TypeAlias = Literal["disjoint", "inside", "overlap"]

_EXACT = 1 << 16  # elements of a strided tensor whose bytes are enumerated


def element_bytes(dtype: str) -> int:
    """Bytes of one element, by the name of its dtype: the first number in it counts bits."""
    bits = re.search(r"\d+", dtype)
    return max(1, int(bits[0]) // 8) if bits else 1  # bool; float4_e2m1fn_x2 is a pair


@functools.lru_cache(1 << 14)
def extent(meta: TensorMeta) -> tuple[int, int]:
    """The bytes START, STOP of its storage between which a tensor's elements lie."""
    size = element_bytes(meta.dtype)
    if 0 in meta.shape:
        return size * meta.offset, size * meta.offset
    last = sum((n - 1) * stride for n, stride in zip(meta.shape, meta.stride, strict=True))
    return size * meta.offset, size * (meta.offset + last + 1)


@functools.lru_cache(1 << 14)
def dense(meta: TensorMeta) -> bool:
    """True if a tensor has exactly one element at every position of its extent, in whatever order."""
    expected = 1
    for stride, n in sorted(zip(meta.stride, meta.shape, strict=True)):
        if n != 1:
            if stride != expected:
                return False
            expected *= n
    return True


@functools.lru_cache(1 << 14)
def row_major(meta: TensorMeta) -> bool:
    """True if the elements are adjacent, in logical order, as torch's contiguous tensors do."""
    expected = 1
    for n, stride in zip(reversed(meta.shape), reversed(meta.stride), strict=True):
        if n != 1 and stride != expected:
            return False
        expected *= n
    return True


@functools.lru_cache(1 << 14)
def same_digest(a: TensorMeta, b: TensorMeta) -> bool:
    """True if two views that begin at one address have the same bytes in the same logical order."""
    if element_bytes(a.dtype) == element_bytes(b.dtype) and (a.shape, a.stride) == (b.shape, b.stride):
        return True
    sizes = [extent(meta)[1] - extent(meta)[0] for meta in (a, b)]
    return sizes[0] == sizes[1] and row_major(a) and row_major(b)


@functools.lru_cache(1 << 14)
def relation(of: TensorMeta, to: TensorMeta, distance: int) -> Relation:
    """The relation between the bytes of two tensors.

    distance -- bytes from the first element of `to` to the first element of `of`

    "inside": every byte of `of` belongs to `to`. Rows that are equally far apart, as of slices of a matrix,
    are compared by arithmetic, other strided tensors of up to 65,536 elements byte by byte; larger ones count
    as occupying their whole extent, and are never "inside" a tensor with gaps.
    """
    length, room = (stop - start for start, stop in map(extent, (of, to)))
    if distance >= room or distance + length <= 0 or not length or not room:
        return "disjoint"
    within = distance >= 0 and distance + length <= room
    if dense(to) and within:
        return "inside"
    if dense(to) and dense(of):
        return "overlap"
    rows, other = _rows(of), _rows(to)
    if rows is not None and other is not None and (known := rows.relation(other, distance)) is not None:
        return known
    if max(math.prod(of.shape), math.prod(to.shape)) > _EXACT or max(length, room) > 64 * _EXACT:
        return "overlap"
    mine, theirs = occupied_bits(of), occupied_bits(to)
    shared = (mine << distance if distance > 0 else mine >> -distance) & theirs
    if not shared:
        return "disjoint"
    return "inside" if shared.bit_count() == mine.bit_count() else "overlap"


def occupied_bytes(meta: TensorMeta) -> int | None:
    """The bytes that a tensor's elements occupy; None: it is large, and has gaps of several kinds."""
    size = math.prod(meta.shape) * element_bytes(meta.dtype)
    if dense(meta):
        return size
    rows = _rows(meta)
    if rows is not None:
        return rows.times * rows.length
    start, stop = extent(meta)
    small = math.prod(meta.shape) <= _EXACT and stop - start <= 64 * _EXACT
    return occupied_bits(meta).bit_count() if small else None


class _Rows(NamedTuple):
    # adjacent bytes, repeated at equal distances
    times: int
    apart: int  # bytes from the beginning of a row to that of the next
    length: int  # bytes

    def relation(self, to: _Rows, distance: int) -> Relation | None:
        # None: the rows are not equally far apart, or one of this lies in two periods of the other
        if self.apart != to.apart:
            return None
        first, shift = divmod(distance, self.apart)
        if shift + self.length > self.apart:
            return None
        if shift >= to.length or first >= to.times or first + self.times <= 0:
            return "disjoint"
        inside = shift + self.length <= to.length and first >= 0 and first + self.times <= to.times
        return "inside" if inside else "overlap"


@functools.lru_cache(1 << 14)
def _rows(meta: TensorMeta) -> _Rows | None:
    # None: it is dense, or has gaps of several kinds
    length = size = element_bytes(meta.dtype)
    outer: list[tuple[int, int]] = []
    for stride, count in sorted(zip(meta.stride, meta.shape, strict=True)):
        if count == 1:
            continue
        if not outer and stride * size == length:
            length *= count
        elif outer and stride * size == outer[-1][0] * outer[-1][1]:
            outer[-1] = outer[-1][0] * count, outer[-1][1]
        else:
            outer.append((count, stride * size))
    if len(outer) != 1 or outer[0][1] < length:
        return None
    return _Rows(outer[0][0], outer[0][1], length)


@functools.lru_cache(256)
def occupied_bits(meta: TensorMeta) -> int:
    """A bit for each byte of a tensor's extent, from the lowest: 1 where the tensor has an element."""
    if 0 in meta.shape:
        return 0
    size = element_bytes(meta.dtype)
    bits = (1 << size) - 1
    for n, stride in zip(meta.shape, meta.stride, strict=True):
        bits = _repeated(bits, n, stride * size)
    return bits


def _repeated(bits: int, times: int, distance: int) -> int:
    # by doubling: the number of steps is the logarithm of `times`
    done = 1
    while done < times:
        more = min(done, times - done)
        bits |= bits << (more * distance)
        done += more
    return bits
