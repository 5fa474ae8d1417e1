"""How far two processes launched the same and computed the same, found without looking at a single launch.

Digests lie in columns, hundreds of launches to a line. Where two runs have the same launches in the same
lines, comparing them compares columns. The first line that differs in anything but what an uninitialised
buffer held ends this; from there on launches are looked at one by one. What these need to know of the
launches before them, who wrote which storage last, is noted on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from tracing.analyze.ways import Place, Signatures, Written, alike, places, relevant
from tracing.digests import BITS
from tracing.errors import Problem
from tracing.model import DigestBatch, LaunchLine, Record
from tracing.store import Run

Pattern: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


class _Start(Record, frozen=True):
    index: int
    signature: int
    stream: int
    storages: tuple[int, ...]


class _Bits(Record, frozen=True):
    launches: Sequence[int]
    patterns: Sequence[Pattern]
    pattern: Sequence[int]
    bits: str
    ranges: msgspec.Raw  # left as text: making numbers of what nobody reads took a third of the time
    l1: msgspec.Raw


_Stretch: TypeAlias = tuple[list[_Start], _Bits | None]


@dataclass(frozen=True, slots=True)
class Prefix:
    """Launches from the first on that are equal in both runs."""

    launches: int
    lines: int  # of digests: theirs
    whole: bool  # neither run has more
    streams: Mapping[int, int]  # of run a, and which of run b did their work
    written: Mapping[int, Written]  # by storage of run a: the launch that wrote it last


def equal_prefix(a: Run, b: Run, process_a: str, process_b: str) -> Prefix:
    """How many launches, from the first on, are certainly equal: launched alike, and with equal digests.

    It may stop early, never late: at a line of digests whose launches the other run wrote in other lines.

    Time: about 3 µs a launch of both runs, most of it unpacking. Memory: a line of digests of each, and what
    is noted for each distinct storage of run a.
    """
    known = a.signatures(process_a), b.signatures(process_b)
    equal, writers = _Equal(*known), _Writers(known[0])
    launches = lines = 0
    whole = False
    runs = (_stretches(a, process_a), _stretches(b, process_b))
    try:
        for one in runs[0]:
            other = next(runs[1], None)
            if other is None or one[1] is None or not equal(one, other):
                break
            equal.streams.update(zip(_streams(one[0]), _streams(other[0]), strict=True))
            writers.add(one[0], one[1])
            launches, lines = launches + len(one[0]), lines + 1
        else:
            whole = next(runs[1], None) is None
    except Problem:  # who looks at the launches one by one says where it is damaged
        pass
    return Prefix(launches, lines, whole, equal.streams, writers.last)


def _stretches(run: Run, process: str) -> Iterator[_Stretch]:
    starts = run.view(process, LaunchLine, _Start)
    for batch in run.view(process, DigestBatch, _Bits):
        yield list(islice(starts, len(batch.launches))), batch
    if rest := list(islice(starts, 1)):
        yield rest, None


class _Equal:
    # whether two stretches are; remembers what it found out about signatures and streams

    def __init__(self, a: Signatures, b: Signatures) -> None:
        self._a, self._b = a, b
        self._alike: dict[tuple[int, int], bool] = {}
        self.streams: dict[int, int] = {}  # of run a, and which of run b did the work so far
        self._masks: dict[tuple[int, Pattern], bytes] = {}

    def __call__(self, a: _Stretch, b: _Stretch) -> bool:
        one, other = a[1], b[1]
        if one is None or other is None or not self._launched_alike(a[0], b[0]):
            return False
        if (one.launches, one.pattern, one.patterns) != (other.launches, other.pattern, other.patterns):
            return False
        if [start.index for start in a[0]] != one.launches:
            return False
        return one.bits == other.bits or self._same_bits(a[0], one, other)

    def _launched_alike(self, a: Sequence[_Start], b: Sequence[_Start]) -> bool:
        if len(a) != len(b):
            return False
        pairs = {(x.signature, y.signature) for x, y in zip(a, b, strict=True)}
        streams = set(zip(_streams(a), _streams(b), strict=True))
        paired = len({one for one, _ in streams}) == len(streams)
        paired &= all(self.streams.get(one, other) == other for one, other in streams)
        return paired and all(self._same_way(*pair) for pair in pairs)

    def _same_way(self, one: int, other: int) -> bool:
        if (one, other) not in self._alike:
            known = one in self._a and other in self._b
            self._alike[one, other] = known and alike(self._a[one], self._b[other])
        return self._alike[one, other]

    def _same_bits(self, starts: Sequence[_Start], a: _Bits, b: _Bits) -> bool:
        if len(a.bits) != len(b.bits):
            return False
        different = (_words(a.bits) != _words(b.bits)).any(axis=1)
        masks = [self._mask(s.signature, a.patterns[n]) for s, n in zip(starts, a.pattern, strict=True)]
        counts = np.frombuffer(b"".join(masks), np.bool_)
        return len(counts) == len(different) and not (counts & different).any()

    def _mask(self, signature: int, pattern: Pattern) -> bytes:
        known = self._masks.get((signature, pattern))
        if known is None:
            known = self._masks[signature, pattern] = bytes(relevant(*pattern, self._a[signature][1]))
        return known


def _streams(starts: Sequence[_Start]) -> list[int]:
    return [start.stream for start in starts]


def _words(bits: str) -> npt.NDArray[np.uint64]:
    return np.frombuffer(bits.encode(), np.uint64).reshape(-1, BITS // 8)


class _Writers:
    # who wrote each storage last, and what it left

    def __init__(self, signatures: Signatures) -> None:
        self._signatures = signatures
        self._places: dict[tuple[int, Pattern], tuple[Place, ...]] = {}
        self.last: dict[int, Written] = {}

    def add(self, starts: Sequence[_Start], batch: _Bits) -> None:
        found: dict[int, tuple[int, Place]] = {}
        for n, (start, number) in enumerate(zip(starts, batch.pattern, strict=True)):
            for place in self._of(start.signature, batch.patterns[number]):
                found[start.storages[place.tensor]] = n, place
        sizes = [len(before) + len(after) for before, after in batch.patterns]
        firsts = list(accumulate((sizes[number] for number in batch.pattern), initial=0))
        for storage, (n, place) in found.items():
            at = BITS * (firsts[n] + place.after) if place.after is not None else len(batch.bits)
            bits = batch.bits[at : at + BITS]
            self.last[storage] = place.written_by(starts[n].index, starts[n].stream, bits)

    def _of(self, signature: int, pattern: Pattern) -> tuple[Place, ...]:
        known = self._places.get((signature, pattern))
        if known is None:
            known = self._places[signature, pattern] = tuple(places(*pattern, *self._signatures[signature]))
        return known
