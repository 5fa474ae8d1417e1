"""How far two processes launched the same and computed the same, found without looking at a single launch.

Digests lie in columns, hundreds of launches to a line. Where two runs have the same launches in the same
lines, comparing them compares columns. The first line that differs in anything but what an uninitialised
buffer held ends this; from there on launches are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec
import numpy as np
import numpy.typing as npt

from tracing.analyze.ways import alike, relevant
from tracing.digests import BITS
from tracing.errors import Problem
from tracing.model import DigestBatch, Kernel, LaunchLine, Record, Signature
from tracing.store import Run

Patterns = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]


class _Start(Record, frozen=True):
    index: int
    signature: int
    stream: int


class _Bits(Record, frozen=True):
    launches: Sequence[int]
    patterns: Patterns
    pattern: Sequence[int]
    bits: str
    ranges: msgspec.Raw  # left as text: making numbers of what nobody reads took a third of the time
    l1: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Prefix:
    """Launches from the first on that are equal in both runs."""

    launches: int
    whole: bool  # neither run has more


def equal_prefix(a: Run, b: Run, process_a: str, process_b: str) -> Prefix:
    """How many launches, from the first on, are certainly equal: launched alike, and with equal digests.

    It may stop early, never late: at a line of digests whose launches the other run wrote in other lines.

    Time: about 3 µs a launch of both runs, most of it unpacking. Memory: a line of digests of each.
    """
    count = 0
    runs = (_stretches(a, process_a), _stretches(b, process_b))
    equal = _Equal(a.signatures(process_a), b.signatures(process_b))
    try:
        for one in runs[0]:
            other = next(runs[1], None)
            if other is None or not equal(one, other):
                return Prefix(count, False)
            count += len(one[0])
        return Prefix(count, next(runs[1], None) is None)
    except Problem:  # who looks at the launches one by one says where it is damaged
        return Prefix(count, False)


_Stretch = tuple[list[_Start], _Bits | None]


def _stretches(run: Run, process: str) -> Iterator[_Stretch]:
    starts = run.view(process, LaunchLine, _Start)
    for batch in run.view(process, DigestBatch, _Bits):
        yield list(islice(starts, len(batch.launches))), batch
    if rest := list(islice(starts, 1)):
        yield rest, None


class _Equal:
    # whether two stretches are; remembers what it found out about signatures and streams

    def __init__(
        self, a: dict[int, tuple[Kernel, Signature]], b: dict[int, tuple[Kernel, Signature]]
    ) -> None:
        self._a, self._b = a, b
        self._alike: dict[tuple[int, int], bool] = {}
        self._streams: dict[int, int] = {}
        self._masks: dict[tuple[int, tuple[tuple[int, ...], tuple[int, ...]]], list[bool]] = {}

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
        streams = {(x.stream, y.stream) for x, y in zip(a, b, strict=True)}
        paired = all(self._streams.setdefault(x, y) == y for x, y in streams)
        return paired and all(self._same_way(*pair) for pair in pairs)

    def _same_way(self, one: int, other: int) -> bool:
        if (one, other) not in self._alike:
            known = one in self._a and other in self._b
            self._alike[one, other] = known and alike(self._a[one], self._b[other])
        return self._alike[one, other]

    def _same_bits(self, starts: Sequence[_Start], a: _Bits, b: _Bits) -> bool:
        if len(a.bits) != len(b.bits):
            return False
        different = np.flatnonzero((_words(a.bits) != _words(b.bits)).any(axis=1))
        mask = [
            counts
            for start, number in zip(starts, a.pattern, strict=True)
            for counts in self._mask(start.signature, a.patterns[number])
        ]
        return len(mask) * BITS == len(a.bits) and not any(mask[i] for i in different.tolist())

    def _mask(self, signature: int, pattern: tuple[tuple[int, ...], tuple[int, ...]]) -> list[bool]:
        known = self._masks.get((signature, pattern))
        if known is None:
            known = self._masks[signature, pattern] = relevant(*pattern, self._a[signature][1])
        return known


def _words(bits: str) -> npt.NDArray[np.uint64]:
    return np.frombuffer(bits.encode(), np.uint64).reshape(-1, BITS // 8)
