"""Which write of run a is the same write in run b, of those that a tensor comes from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from tracing.analyze.compare.memory import Sources, Write
from tracing.analyze.compare.pairing import Pairing


class WritePair(NamedTuple):
    """One write in either run; None: that run has no such write."""

    a: Write | None
    b: Write | None
    same: bool = False  # by the same launch, or by a call of the same operator with the same arguments


class WritePairs:
    """Matches writes by launch partners, and by names and arguments of operators."""

    def __init__(self, pairing: Pairing) -> None:
        self._pairing = pairing

    def of(self, a: Sources, b: Sources) -> Iterator[WritePair]:
        """Every write of both sides once: those that correspond, then the others side by side."""
        left_a, left_b = list(self._changing(a, 0)), list(self._changing(b, 1))
        for exactly in (True, False):
            for one in list(left_a):
                found = next((other for other in left_b if self._is_same(one, other, exactly)), None)
                if found is not None:
                    left_a.remove(one)
                    left_b.remove(found)
                    yield WritePair(one, found, True)
        rest = [WritePair(*pair) for pair in zip_longest(left_a, left_b)]
        yield from rest or ([WritePair(None, None)] if None in a or None in b else [])

    def _changing(self, sources: Sources, side: int) -> Iterator[Write]:
        # a launch that only one run has and that left what it found is not what made a difference
        for write in sources:
            if write is None:
                continue
            if write.kind == "launch" and not write.changed and self.partner(write, side) is None:
                yield from self._changing(write.below, side)
            else:
                yield write

    def partner(self, write: Write, side: int) -> int | None:
        """The launch of the other run that is the partner of the one that wrote this."""
        if side == 0:
            return self._pairing.partner(write.number)
        return self._pairing.partner_in_a(write.number)

    def passed_on(self, a: Write, b: Write) -> bool:
        """True if one of two writes is an operator that read what the other run's write left."""
        given = ((one, b, 0) for found in a.reads for one in found)
        theirs = ((a, one, 1) for found in b.reads for one in found)
        return any(
            one is not None and other is not None and self._is_same(one, other, False)
            for one, other, _ in (*given, *theirs)
        )

    def _is_same(self, a: Write, b: Write, exactly: bool) -> bool:
        # exactly -- of several calls of one operator the one that is as many-th
        if a.kind != b.kind or a.out_of_bounds != b.out_of_bounds:
            return False
        if a.kind in ("launch", "seen"):
            return self._pairing.partner(a.number) == b.number and a.argument == b.argument
        called = (a.name, a.position, a.argument) == (b.name, b.position, b.argument)
        return called and (a.call == b.call or not exactly)
