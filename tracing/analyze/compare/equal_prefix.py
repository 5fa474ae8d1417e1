"""Finds the equal beginning of two processes by whole columns of digests, not launch by launch.

Digests are stored in columns, one line for hundreds of launches. If two runs have equal launches in equal
lines, whole columns are compared. The first line that differs in more than the contents of an uninitialised
buffer ends the prefix; from there on launches are compared one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import msgspec

from tracing.analyze.align.launch_matching import Queue
from tracing.analyze.compare.kernel_code import KernelCodes
from tracing.analyze.compare.signature_pair import Signatures, launched_alike, relevant
from tracing.analyze.compare.timeline.timeline_step import Position
from tracing.digest.columns import BITS
from tracing.errors import Problem
from tracing.model import DigestBatch, LaunchLine, Record
from tracing.store import Run

FIRST = Position()
Pattern: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


class _Start(Record, frozen=True):
    index: int
    signature: int
    stream: int
    thread: int = 0


class _Bits(Record, frozen=True):
    launches: Sequence[int]
    patterns: Sequence[Pattern]
    pattern: Sequence[int]
    bits: str
    ranges: msgspec.Raw  # left as text: parsing numbers that are never read took a third of the time
    l1: msgspec.Raw


_Stretch: TypeAlias = tuple[list[_Start], _Bits | None]


@dataclass(frozen=True, slots=True)
class Prefix:
    """Launches that are equal in both runs, up to a position."""

    stop: Position
    whole: bool  # neither run has more
    queues: Mapping[Queue, Queue]  # of run a, and the one of run b that corresponds to it


def equal_prefix(a: Run, b: Run, processes: tuple[str, str], codes: KernelCodes, start: Position) -> Prefix:
    """The number of launches, from a position on, that have equal settings and equal digests.

    It may stop early, never late: at a line of digests whose launches the other run wrote in other lines.

    Time: about 3 µs a launch of both runs, most of it unpacking. Memory: a line of digests of each.
    """
    equal = _Equal(a.signatures(processes[0]), b.signatures(processes[1]), codes)
    launches, lines = start
    whole = False
    runs = (_stretches(a, processes[0], start), _stretches(b, processes[1], start))
    # a damaged run is equal up to the damage; the comparison launch by launch reports it
    with suppress(Problem):
        for one in runs[0]:
            other = next(runs[1], None)
            if other is None or one[1] is None or not equal(one, other):
                break
            equal.queues.update(zip(_queues(one[0]), _queues(other[0]), strict=True))
            launches, lines = launches + len(one[0]), lines + 1
        else:
            whole = next(runs[1], None) is None
    return Prefix(Position(launches, lines), whole, equal.queues)


def _stretches(run: Run, process: str, at: Position) -> Iterator[_Stretch]:
    starts = run.view(process, LaunchLine, _Start, at.launches)
    for batch in run.view(process, DigestBatch, _Bits, at.lines):
        yield list(islice(starts, len(batch.launches))), batch
    if rest := list(islice(starts, 1)):
        yield rest, None


class _Equal:
    # True if two stretches are equal; caches the answers for signatures and streams

    def __init__(self, a: Signatures, b: Signatures, codes: KernelCodes) -> None:
        self._a, self._b, self._codes = a, b, codes
        self._alike: dict[tuple[int, int], bool] = {}
        self.queues: dict[Queue, Queue] = {}  # of run a, and the one of run b that corresponds to it so far
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
        queues = set(zip(_queues(a), _queues(b), strict=True))
        paired = len({one for one, _ in queues}) == len(queues)
        paired &= all(self.queues.get(one, other) == other for one, other in queues)
        return paired and all(self._same_signature(*pair) for pair in pairs)

    def _same_signature(self, one: int, other: int) -> bool:
        if (one, other) not in self._alike:
            self._alike[one, other] = one in self._a and other in self._b and self._are_alike(one, other)
        return self._alike[one, other]

    def _are_alike(self, one: int, other: int) -> bool:
        (kernel_a, a), (kernel_b, b) = self._a[one], self._b[other]
        alike = launched_alike((kernel_a, a), (kernel_b, b))
        return alike and self._codes.difference(kernel_a, kernel_b) is None

    def _same_bits(self, starts: Sequence[_Start], a: _Bits, b: _Bits) -> bool:
        masks = [self._mask(s.signature, a.patterns[n]) for s, n in zip(starts, a.pattern, strict=True)]
        relevant_digits = b"".join(masks)
        if not len(a.bits) == len(b.bits) == len(relevant_digits):
            return False
        different = _number(a.bits.encode()) ^ _number(b.bits.encode())
        return not different & _number(relevant_digits)

    def _mask(self, signature: int, pattern: Pattern) -> bytes:
        known = self._masks.get((signature, pattern))
        if known is None:
            digests = relevant(*pattern, self._a[signature][1])
            known = b"".join((b"\xff" if one else b"\0") * BITS for one in digests)
            self._masks[signature, pattern] = known
        return known


def _queues(starts: Sequence[_Start]) -> list[Queue]:
    return [(start.stream, start.thread) for start in starts]


def _number(digits: bytes) -> int:
    # whole columns are compared at once, as numbers
    return int.from_bytes(digits, "little")
