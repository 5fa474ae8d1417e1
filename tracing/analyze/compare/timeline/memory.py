"""Tracks the last writer of each byte in one process of one run.

Memory is the address space of the process: slices, views, overlapping arguments and memory that an allocator
reused are all ranges of addresses. Launches and operators write in the order in which they were made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import combinations, islice, takewhile
from typing import Literal, NamedTuple, TypeAlias

from tracing.model import CallSite, TensorMeta
from tracing.views import dense, extent, occupied_bytes, relation

WriteKind: TypeAlias = Literal["launch", "operator", "allocation", "start", "seen"]
_BELOW = 4  # maximum of overlapping partial writes whose order is kept


class WrittenBits(NamedTuple):
    """The bits of a view after a write."""

    address: int  # of its first element
    view: TensorMeta
    bits: str  # empty: no digest was taken


class Write(NamedTuple):
    """One write to a range of addresses."""

    kind: WriteKind  # "start": the case began with it; "seen": this launch read it first, with no writer
    number: int  # of the launch, of the operator's call, or of what the case began with
    position: int  # of the argument, or of the operator's output
    name: str  # of the kernel or the operator
    argument: str  # name of the argument; of an operator its arguments that are no tensors
    address: int  # of the first byte that was written
    region: TensorMeta  # the written region, from that byte on
    left: WrittenBits
    stream: int = 0
    whole: bool = True  # every element of the region was written
    changed: bool = True  # False: the region held these bits before
    out_of_bounds: bool = False
    order: int = 0  # later writes have higher numbers
    reads: tuple[Input, ...] = ()  # of an operator: the contents of each input
    depth: int = 0  # operators in a row through which it can be followed back
    call: int = 0  # of an operator: number of earlier calls with these arguments
    site: CallSite | None = None  # of an operator
    below: Sources = ()  # the previous writes of the region; kept if this write may not cover it
    cut: bool = False  # of an operator: its inputs are left out, as the chain of operators after it is long


Sources: TypeAlias = "tuple[Write | None, ...]"  # None: some of the bytes have no recorded writer


class FirstAccess(NamedTuple):
    """The position of a tensor in a storage, and the first access to that storage."""

    kind: WriteKind
    name: str  # of an operator, or of what the case began with
    arguments: str  # of an operator
    number: int  # of a launch; of an operator: number of earlier calls with these arguments
    position: int  # among the tensors of the launch or the operator
    start: int = 0  # bytes from the start of the storage
    earlier: int = 0  # of an operator: number of all calls before it


class PlacedTensor(NamedTuple):
    """A tensor in a storage of one process."""

    storage: int
    meta: TensorMeta  # its offset counts from the start of the storage

    def distance(self, other: PlacedTensor) -> int | None:
        """Bytes from the first element of another tensor to that of this one; None: in another storage."""
        if self.storage != other.storage:
            return None
        return extent(self.meta)[0] - extent(other.meta)[0]


class Input(NamedTuple):
    """A tensor that was read."""

    address: int  # of its first element
    sources: Sources
    tensor: PlacedTensor | None = None  # None: its storage is unknown
    bits: str = ""  # of an operator's input, if its digest was recorded


class MemoryWrites:
    """The latest writes, as sorted ranges of addresses.

    Time: some 1 µs for a range that was written before, proportional to the number of ranges for a new one.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._writes: list[Write] = []

    def write(self, start: int, stop: int, write: Write) -> None:
        """Make a write the last writer of the bytes START:STOP."""
        if start >= stop:
            return
        at = bisect_right(self._starts, start) - 1
        if at >= 0 and self._starts[at] == start and self._stops[at] == stop:
            self._writes[at] = _on(write, self._writes[at])
            return
        first = at + 1 if at < 0 or self._stops[at] <= start else at
        last = first
        while last < len(self._starts) and self._starts[last] < stop:
            last += 1
        self._replace(first, last, list(self._pieces(first, last, start, stop, write)))

    def has(self, start: int, stop: int) -> bool:
        """True if exactly these bytes were written together."""
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and self._starts[at] == start and self._stops[at] == stop

    def fill(self, start: int, stop: int, write: Write) -> None:
        """Assign a write to those of the bytes START:STOP that have no recorded writer."""
        at = bisect_right(self._starts, start) - 1
        if start >= stop or (at >= 0 and self._stops[at] >= stop):
            return
        position = start
        for first, last in [*self._between(start, stop), (stop, stop)]:
            if position < first:
                self.write(position, first, write)
            position = max(position, last)

    def _between(self, start: int, stop: int) -> list[tuple[int, int]]:
        at = max(0, bisect_right(self._starts, start) - 1)
        pairs = zip(islice(self._starts, at, None), islice(self._stops, at, None), strict=True)
        return [(first, last) for first, last in takewhile(lambda one: one[0] < stop, pairs) if last > start]

    def sources(self, start: int, stop: int, meta: TensorMeta) -> Sources:
        """The writes that the elements of a tensor come from, in the order of their addresses.

        start, stop -- the extent of the tensor, in addresses
        """
        writes: dict[object, Write | None] = {}
        at = max(0, bisect_right(self._starts, start) - 1)
        if at < len(self._starts) and self._starts[at] <= start and self._stops[at] >= stop:
            write = self._writes[at]
            if not write.below and self._starts[at] == start and self._stops[at] == stop:
                return (write,)
        position = start
        while at < len(self._starts) and self._starts[at] < stop:
            if self._stops[at] > start:
                if self._starts[at] > position:
                    writes[None] = None
                for one in _visible(self._writes[at], start, meta):
                    writes.setdefault(one and one[:4], one)
                position = self._stops[at]
            at += 1
        if position < stop:
            writes[None] = None
        return _not_covered(tuple(writes.values()), start, meta)

    def _pieces(
        self, first: int, last: int, start: int, stop: int, write: Write
    ) -> Iterator[tuple[int, int, Write]]:
        position = start
        for at in range(first, last):
            old_start, old_stop, old = self._starts[at], self._stops[at], self._writes[at]
            if old_start < start:
                yield old_start, start, old
            if old_start > position:
                yield position, old_start, _on(write, None)
            yield max(old_start, start), min(old_stop, stop), _on(write, old)
            position = min(old_stop, stop)
            if old_stop > stop:
                yield stop, old_stop, old
        if position < stop:
            yield position, stop, _on(write, None)

    def _replace(self, first: int, last: int, pieces: list[tuple[int, int, Write]]) -> None:
        pieces.sort(key=lambda piece: piece[0])
        merged: list[tuple[int, int, Write]] = []
        for start, stop, write in pieces:
            if merged and merged[-1][1] == start and merged[-1][2] == write:
                merged[-1] = (merged[-1][0], stop, write)
            else:
                merged.append((start, stop, write))
        self._starts[first:last] = [piece[0] for piece in merged]
        self._stops[first:last] = [piece[1] for piece in merged]
        self._writes[first:last] = [piece[2] for piece in merged]


def _on(write: Write, below: Write | None) -> Write:
    if write.whole and write.changed and dense(write.region):
        return write
    return write._replace(below=_cut((below,), _BELOW))


def _cut(sources: Sources, depth: int) -> Sources:
    return tuple([one if one is None or not one.below else _shallow(one, depth) for one in sources])


def _shallow(write: Write, depth: int) -> Write:
    return write._replace(below=_cut(write.below, depth - 1) if depth else (None,))


def _visible(write: Write, start: int, meta: TensorMeta) -> Iterator[Write | None]:
    # the writes that a tensor beginning at `start` holds: the last one and those below it
    lies = relation(meta, write.region, start - write.address)
    if lies != "disjoint":
        yield write
    if write.whole and (lies == "inside" or dense(write.region)):
        return
    for one in write.below:
        if one is None:
            yield None
        else:
            yield from _visible(one, start, meta)


def _not_covered(writes: Sources, start: int, meta: TensorMeta) -> Sources:
    # without writes before others that together wrote each element, as the slices of a matrix
    if len(writes) < 3:
        return writes
    left, parts = occupied_bytes(meta), list[Write]()
    for one in sorted(filter(None, writes), key=lambda one: -one.order):
        written = occupied_bytes(one.region)
        if left is None or written is None or not one.whole:
            continue
        inside = relation(one.region, meta, one.address - start) == "inside"
        if inside and not any(_meet(one, part) for part in parts):
            parts.append(one)
            left -= written
        if not left:
            return tuple([write for write in writes if write is not None and write.order >= one.order])
    return writes


def may_fill(sources: Sources) -> bool:
    """True if it is not known which bytes strided writes fill together."""
    strided = [
        one
        for one in sources
        if one is not None and one.kind != "allocation" and one.whole and not dense(one.region)
    ]
    unknown = any(occupied_bytes(one.region) is None for one in strided)
    return unknown or any(_meet(*pair) for pair in combinations(strided, 2))


def _meet(one: Write, other: Write) -> bool:
    return relation(one.region, other.region, one.address - other.address) != "disjoint"


def span(address: int, meta: TensorMeta) -> tuple[int, int]:
    """The addresses START, STOP of a tensor whose storage begins at an address."""
    start, stop = extent(meta)
    return address + start, address + stop
