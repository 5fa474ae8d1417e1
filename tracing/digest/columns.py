"""Digests of many launches, column by column: their file format, written and read.

A launch has about five digests. Stored as columns, one line for hundreds of launches, they need neither names
nor quotes on disk, and no object for each digest in memory.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple, Protocol

import msgspec

from tracing.model import Digest, DigestBatch, DigestLine, LaunchLine

BITS = 32  # hexadecimal digits of a digest
RANGE = 3  # of one range of its elements
TILE_BYTES = 8192
RANGES = 8  # of tiles: a difference between two tensors is located without the tensors


@functools.lru_cache(4096)
def block_tiles(nbytes: int) -> int:
    """The number of tiles in one range of a tensor's `tiles`: a power of two, so that RANGES suffice."""
    tiles = -(-nbytes // TILE_BYTES)
    return 1 << max(0, (-(-tiles // RANGES) - 1).bit_length())


@functools.lru_cache(4096)
def blocks(nbytes: int) -> int:
    """The number of ranges of a tensor of this size."""
    return -(-nbytes // (TILE_BYTES * block_tiles(nbytes)))


@dataclass(frozen=True, slots=True)
class Columns:
    """n digests; see `Digest` for what each column holds."""

    bits: str  # n * 32 hexadecimal digits
    tiles: str  # 3 hexadecimal digits a range
    ranges: Sequence[int]  # [n] how many of these belong to each digest
    l1: Sequence[float | None]  # [n] None or NaN: the dtype has no magnitude
    special: Mapping[int, tuple[int, int, int]]  # NaN, inf and -0.0 of those that have any

    @classmethod
    def of(cls, digests: Sequence[Digest]) -> Columns:
        """Digests as columns."""
        counts = {i: (d.nan, d.inf, d.negative_zero) for i, d in enumerate(digests)}
        return cls(
            "".join(d.bits for d in digests),
            "".join(d.tiles for d in digests),
            [len(d.tiles) // RANGE for d in digests],
            [d.l1 for d in digests],
            {i: special for i, special in counts.items() if any(special)},
        )

    def part(self, first: int, stop: int) -> Columns:
        """The digests first:stop."""
        if (first, stop) == (0, len(self.ranges)):
            return self
        start, count = sum(self.ranges[:first]), sum(self.ranges[first:stop])
        return Columns(
            self.bits[BITS * first : BITS * stop],
            self.tiles[RANGE * start : RANGE * (start + count)],
            self.ranges[first:stop],
            self.l1[first:stop],
            {i - first: special for i, special in self.special.items() if first <= i < stop},
        )

    def digests(self) -> list[Digest]:
        """Digests as objects."""
        ends = [RANGE * end for end in accumulate(self.ranges, initial=0)]
        none = (0, 0, 0)
        return [
            Digest(
                self.bits[BITS * i : BITS * i + BITS],
                self.tiles[ends[i] : ends[i + 1]],
                *self.special.get(i, none),
                None if l1 is None or math.isnan(l1) else l1,
            )
            for i, l1 in enumerate(self.l1)
        ]


class Digested(NamedTuple):
    """The position of one launch's digests in columns: first those before it, then those after it."""

    launch: int
    columns: Columns
    first: int
    before: Sequence[int]  # argument positions
    after: Sequence[int]

    @property
    def stop(self) -> int:
        """The index after its last digest."""
        return self.first + len(self.before) + len(self.after)


class DigestedPositions(Protocol):
    """The argument positions that are digested before a launch, and after it."""

    @property
    def before(self) -> Sequence[int]: ...
    @property
    def after(self) -> Sequence[int]: ...


@dataclass(frozen=True, slots=True)
class DigestedLaunches:
    """The digests of some launches, one launch after the other in the columns."""

    launches: Sequence[int | None]  # None: its digests are not wanted
    columns: Columns
    firsts: Sequence[int]  # the first digest of each
    sides: Sequence[DigestedPositions]  # of each; few objects, which many launches share

    @classmethod
    def one(
        cls, launch: int, columns: Columns, before: Sequence[int] = (), after: Sequence[int] = ()
    ) -> DigestedLaunches:
        """A single launch, all of whose digests the columns are."""
        return cls([launch], columns, [0], [Digested(launch, columns, 0, before, after)])

    def __iter__(self) -> Iterator[Digested]:
        for launch, first, sides in zip(self.launches, self.firsts, self.sides, strict=True):
            if launch is not None:
                yield Digested(launch, self.columns, first, sides.before, sides.after)

    def line(self) -> DigestBatch:
        """The line of all these launches, each of which must be wanted."""
        return _line([launch for launch in self.launches if launch is not None], self.columns, self.sides)


def packed(launches: Sequence[Digested]) -> Iterator[DigestBatch]:
    """The lines of these launches, one for each run of launches that are adjacent in the columns."""
    start = 0
    for end in range(1, len(launches) + 1):
        if end == len(launches) or not _adjacent(launches[end - 1], launches[end]):
            part = launches[start:end]
            columns = part[0].columns.part(part[0].first, part[-1].stop)
            yield _line([one.launch for one in part], columns, part)
            start = end


def _adjacent(one: Digested, following: Digested) -> bool:
    return one.columns is following.columns and one.stop == following.first


def _line(launches: list[int], columns: Columns, sides: Sequence[DigestedPositions]) -> DigestBatch:
    patterns: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    numbers: dict[int, int] = {}  # of patterns, by id of the sides
    for one in sides:
        if id(one) not in numbers:
            pattern = tuple(one.before), tuple(one.after)
            numbers[id(one)] = patterns.setdefault(pattern, len(patterns))
    return DigestBatch(
        launches,
        list(patterns),
        [numbers[id(one)] for one in sides],
        columns.bits,
        columns.tiles,
        columns.ranges,
        columns.l1,
        columns.special,
    )


class RecordedBatch:
    """A recorded batch; its digests become objects at the first access."""

    def __init__(self, recorded: DigestBatch) -> None:
        self.bits = recorded.bits
        self.launches = recorded.launches
        self._recorded = recorded

    @functools.cached_property
    def digests(self) -> Sequence[Digest]:
        """All digests of the batch, in the order of `bits`."""
        batch = self._recorded
        return Columns(batch.bits, batch.tiles, batch.ranges, batch.l1, batch.special).digests()


class Row(msgspec.Struct, gc=False):
    """One launch, with its digests in columns."""

    line: LaunchLine
    batch: RecordedBatch | None = None  # None: it has no digests
    before: Sequence[int] = ()  # argument positions
    after: Sequence[int] = ()
    first: int = 0  # its first digest in the batch

    def bits(self, start: int, stop: int) -> str:
        """The bits of its digests start:stop, concatenated; empty for start = -1."""
        if self.batch is None or start < 0:
            return ""
        return self.batch.bits[BITS * (self.first + start) : BITS * (self.first + stop)]

    @property
    def pattern(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The positions of the arguments that were digested before and after."""
        return tuple(self.before), tuple(self.after)

    def digest(self, position: int, side: Literal["before", "after"]) -> str:
        """The bits of one argument before or after the launch; empty if they were not taken."""
        if side == "after" and position in self.after:
            n = len(self.before) + list(self.after).index(position)
        elif side == "before" and position in self.before:
            n = list(self.before).index(position)
        else:
            return ""
        return self.bits(n, n + 1)

    def digests(self) -> DigestLine | None:
        """Its digests as objects; raises ValueError or IndexError where its batch has lost some."""
        if self.batch is None:
            return None
        between = self.first + len(self.before)
        digests = self.batch.digests
        before = zip(self.before, digests[self.first : between], strict=True)
        after = zip(self.after, digests[between : between + len(self.after)], strict=True)
        return DigestLine(self.line.index, dict(before), dict(after))


def rows(lines: Iterable[LaunchLine], batches: Iterable[DigestBatch]) -> Iterator[Row]:
    """Each launch with its digests; both are of one process and in launch order.

    Raises ValueError or IndexError where the columns of a batch do not fit each other.
    """
    waiting = iter(lines)
    line = next(waiting, None)
    for batch in batches:
        first, columns = 0, RecordedBatch(batch)
        if len(batch.launches) != len(batch.pattern):
            raise ValueError(f"{len(batch.launches)} launches, {len(batch.pattern)} patterns")
        for launch, number in zip(batch.launches, batch.pattern, strict=True):
            before, after = batch.patterns[number]
            while line is not None and line.index < launch:
                yield Row(line)
                line = next(waiting, None)
            if line is not None and line.index == launch:
                yield Row(line, columns, before, after, first)
                line = next(waiting, None)
            first += len(before) + len(after)
        if BITS * first != len(batch.bits) or first != len(batch.l1):
            raise ValueError(f"{first} digests are named, {len(batch.l1)} are there")
    while line is not None:
        yield Row(line)
        line = next(waiting, None)
