"""Pairs the writes that produced a tensor in run a with those in run b."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from tracing.analyze.compare.causes.copied_writes import copied_from
from tracing.analyze.compare.pairing import Pairing
from tracing.analyze.compare.timeline.memory import Input, Sources, Write
from tracing.views import extent


class WritePair(NamedTuple):
    """One write in either run; None: that run has no such write."""

    a: Write | None
    b: Write | None
    same: bool = False  # by the same launch, or by a call of the same operator with the same arguments


class WritePairs:
    """Matches writes by launch partners, and by names and arguments of operators."""

    def __init__(self, pairing: Pairing) -> None:
        self._pairing = pairing

    def of(self, a: Sequence[Input], b: Sequence[Input]) -> Iterator[WritePair]:
        """Every write of both runs once: corresponding writes as pairs, then the others in order.

        a, b -- the reads of each run; the order of several tensors is ignored
        """
        left_a, left_b = list(self._placed(a, 0)), list(self._placed(b, 1))
        matched: list[tuple[_Placed, _Placed]] = []
        for exactly in (True, False):
            for one in list(left_a):
                partner = next(
                    (other for other in left_b if self._is_same(one, other, exactly=exactly)), None
                )
                if partner is not None:
                    left_a.remove(one)
                    left_b.remove(partner)
                    matched.append((one, partner))
                    yield WritePair(one.write, partner.write, True)
        yield from self._copied(left_a, left_b, matched)
        unseen = any(None in read.sources for read in (*a, *b))
        for one, other in [*zip_longest(left_a, left_b)] or [(None, None)] * unseen:
            # one write may cover what several wrote in the other run
            ours, theirs = one or _covering(other, left_a, a), other or _covering(one, left_b, b)
            yield WritePair(ours and ours.write, theirs and theirs.write)

    def _copied(
        self, left_a: list[_Placed], left_b: list[_Placed], matched: Sequence[tuple[_Placed, _Placed]]
    ) -> Iterator[WritePair]:
        # A copy that one run lacks is not the cause if that run reads the same writes without it.
        for side, left, other in ((0, left_a, left_b), (1, left_b, left_a)):
            candidates = [*other, *(pair[1 - side] for pair in matched)]
            for copy in list(left):
                origins = [
                    _Placed(one, copy.distance + one.address - copy.write.address)
                    for one in copied_from(copy.write)
                ]
                partners = [self._partner_of(origin, candidates, side) for origin in origins]
                if not origins or None in partners:
                    continue
                left.remove(copy)
                for origin, partner in zip(origins, partners, strict=True):
                    assert partner is not None
                    if partner in other:
                        other.remove(partner)
                    pair = (origin.write, partner.write) if side == 0 else (partner.write, origin.write)
                    yield WritePair(*pair, True)

    def _partner_of(self, one: _Placed, candidates: Sequence[_Placed], side: int) -> _Placed | None:
        for candidate in candidates:
            pair = (one, candidate) if side == 0 else (candidate, one)
            if self._is_same(*pair, exactly=True):
                return candidate
        return None

    def are_exchanged(self, a: Sequence[Input], b: Sequence[Input]) -> bool:
        """True if the runs read the same tensors in another order."""

        def same(one: Sequence[_Placed], other: Sequence[_Placed]) -> bool:
            alike = zip(one, other, strict=False)
            return len(one) == len(other) and all(self._is_same(*pair, exactly=True) for pair in alike)

        ours, theirs = ([list(self._placed([read], side)) for read in one] for side, one in enumerate((a, b)))
        if len(ours) != len(theirs) or not all(ours) or all(map(same, ours, theirs)):
            return False
        for one in ours:
            partner = next((n for n, other in enumerate(theirs) if same(one, other)), None)
            if partner is None:
                return False
            del theirs[partner]
        return True

    def _placed(self, reads: Sequence[Input], side: int) -> Iterator[_Placed]:
        known = set()
        for read in reads:
            for write in self._changing(read.sources, side):
                placed = _Placed(write, write.address - read.address)
                if (write[:4], placed.distance) not in known:
                    known.add((write[:4], placed.distance))
                    yield placed

    def _changing(self, sources: Sources, side: int) -> Iterator[Write]:
        # a launch that only one run has, and that changed no memory, is not the cause
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
        """True if one of two writes is an operator that read the result of the other run's write."""
        given = ((one, b) for read in a.reads for one in read.sources)
        theirs = ((a, one) for read in b.reads for one in read.sources)
        return any(
            one is not None
            and other is not None
            and self._is_same(_Placed(one, 0), _Placed(other, 0), exactly=False)
            for one, other in (*given, *theirs)
        )

    def _is_same(self, one: _Placed, other: _Placed, *, exactly: bool) -> bool:
        # exactly -- the call of the operator with the same number, not any call of it
        a, b = one.write, other.write
        if a.kind != b.kind or a.out_of_bounds != b.out_of_bounds:
            return False
        if a.kind in ("launch", "seen"):
            placed = one.distance == other.distance or a.kind == "seen"
            return placed and self._pairing.partner(a.number) == b.number and a.argument == b.argument
        if a.kind == "start":
            return a.name == b.name and one.distance == other.distance
        called = (a.name, a.position, a.argument) == (b.name, b.position, b.argument)
        placed = one.distance == other.distance and _same_layout(a, b)
        return called and placed and (a.call == b.call or not exactly)


class _Placed(NamedTuple):
    write: Write
    distance: int  # bytes from the first element of the tensor that was read

    def of_read(self, size: int) -> range:
        """The bytes that it wrote of the tensor that was read, which has so many."""
        start, stop = extent(self.write.region)
        return range(max(0, self.distance), min(size, self.distance + stop - start))


def _covering(write: _Placed | None, others: Sequence[_Placed], reads: Sequence[Input]) -> _Placed | None:
    # the first of several writes of one run that wrote all the bytes which a write of the other run wrote
    if write is None or len(reads) != 1 or (tensor := reads[0].tensor) is None:
        return None
    start, stop = extent(tensor.meta)
    own = write.of_read(stop - start)
    covered = (one.of_read(stop - start) for one in others)
    around = (one.start <= own.start and own.stop <= one.stop for one in covered)
    return next((one for one, covers in zip(others, around, strict=True) if covers), None)


def _same_layout(a: Write, b: Write) -> bool:
    ours, theirs = a.region, b.region
    return (ours.shape, ours.stride, ours.dtype) == (theirs.shape, theirs.stride, theirs.dtype)
