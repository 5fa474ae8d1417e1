"""Why two partners read different bits: who wrote them last, in either run, and did it write the same?

What a kernel reads is followed back through the operators that passed it on, until something is found that
the two runs did differently, or a launch whose results are known to differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from tracing.analyze.compare.divergence import (
    Cause,
    Host,
    Operator,
    Overrun,
    Runs,
    Stream,
    Uninitialised,
    Unknown,
    Writer,
)
from tracing.analyze.compare.memory import Sources, Write, span
from tracing.analyze.compare.pairing import Pairing
from tracing.analyze.compare.timeline import Step, Timeline
from tracing.analyze.views import same_digest
from tracing.model import TensorMeta


@dataclass(frozen=True, slots=True)
class Follows:
    """It differs because an earlier launch differs, or because only one run has it."""


Answer: TypeAlias = Cause | Follows | None  # None: nothing is known to differ


class _Read(NamedTuple):
    # one tensor as it was read in one run
    address: int
    meta: TensorMeta
    bits: str  # empty: not known
    stream: int
    before: int  # the launches before this one were made
    step: Step | None  # the launch that read it; None: an operator did

    @property
    def launch(self) -> int | None:
        return self.step.index if self.step is not None else None


class _Pair(NamedTuple):
    # the writes of either run that correspond to one another
    a: Write | None
    b: Write | None


class Causes:
    """Answers for one process of each run."""

    def __init__(self, a: Timeline, b: Timeline, pairing: Pairing, unknown: str) -> None:
        """unknown -- what can be said of memory that nobody was seen to write; empty: the host made it"""
        self._timelines, self._pairing, self._unknown = (a, b), pairing, unknown

    def of(self, a: Step, b: Step, position: int) -> Cause | Follows:
        """Why an argument that two partners read differs."""
        reads = _read(a, position), _read(b, position)
        answer = self._compared(a.sources.get(position, ()), b.sources.get(position, ()), reads)
        if not isinstance(answer, Follows) and (elements := _uninitialised(a, b, position)):
            known = answer if isinstance(answer, Uninitialised) else Uninitialised(None)
            return replace(known, elements=elements)
        return answer or Unknown("all that was seen to write it left equal bits")

    def _compared(self, a: Sources, b: Sources, reads: tuple[_Read, _Read]) -> Answer:
        latest = [max((one.order for one in side if one is not None), default=0) for side in (a, b)]
        answers = [self._answer(pair, reads, latest) for pair in self._matched(a, b)]
        for wanted in (Follows, _proven, Uninitialised, Overrun, object):
            for answer in answers:
                if answer is not None and (
                    isinstance(answer, wanted) if isinstance(wanted, type) else wanted(answer)
                ):
                    return answer
        return None

    def _matched(self, a: Sources, b: Sources) -> Iterator[_Pair]:
        left_a = list(self._changing(a, 0))
        left_b = list(self._changing(b, 1))
        for one in list(left_a):
            found = next((other for other in left_b if self._same_write(one, other)), None)
            if found is not None:
                left_a.remove(one)
                left_b.remove(found)
                yield _Pair(one, found)
        unseen = None in a or None in b
        rest = [_Pair(*pair) for pair in zip_longest(left_a, left_b)]
        yield from rest or ([_Pair(None, None)] if unseen else [])

    def _changing(self, sources: Sources, side: int) -> Iterator[Write]:
        # a launch that only one run has and that left what it found is not what made a difference
        for write in sources:
            if write is None:
                continue
            if write.kind == "launch" and not write.changed and not self._has_partner(write, side):
                yield from self._changing(write.below, side)
            else:
                yield write

    def _has_partner(self, write: Write, side: int) -> bool:
        if side == 0:
            return self._pairing.partner(write.number) is not None
        return self._pairing.partner_in_a(write.number) is not None

    def _same_write(self, a: Write, b: Write) -> bool:
        if a.kind != b.kind or a.out_of_bounds != b.out_of_bounds:
            return False
        if a.kind in ("launch", "seen"):
            return self._pairing.partner(a.number) == b.number and a.position == b.position
        return (a.name, a.position, a.argument) == (b.name, b.position, b.argument)

    # ---- one pair of writes

    def _answer(self, pair: _Pair, reads: tuple[_Read, _Read], latest: Sequence[int]) -> Answer:
        a, b = pair
        if a is None and b is None:
            return self._unseen()
        if a is None or b is None or not self._same_write(a, b):
            return self._unlike(a, b, reads)
        if a.kind == "operator":
            return self._operator(a, b, reads)
        if a.kind == "allocation":
            return self._allocated(reads)
        if a.out_of_bounds:
            return Overrun(_writer(a, b), "ab")
        status = self._pairing.status(a.number, a.position)
        if status == "differs":
            return Follows()
        if status == "loose":
            return Uninitialised(_writer(a, b))
        return self._changed(a, b, reads, [a.order == latest[0], b.order == latest[1]])

    def _unlike(self, a: Write | None, b: Write | None, reads: tuple[_Read, _Read]) -> Answer:
        # only one run has this write, or each has another one
        if any(self._is_out_of_order(write, side, reads) for side, write in enumerate((a, b))):
            return Follows()
        if any(one is not None and one.kind == "allocation" for one in (a, b)):
            return Uninitialised(None)
        runs: Runs = "ab" if a and b else "a" if a else "b"
        overrun = next((one for one in (a, b) if one is not None and one.out_of_bounds), None)
        if overrun is not None:
            return Overrun(_writer(a if overrun is a else None, b if overrun is b else None), runs)
        operators = [one if one is not None and one.kind == "operator" else None for one in (a, b)]
        if any(operators):
            return self._only_called(operators[0], operators[1], reads)
        return self._unseen()

    def _is_out_of_order(self, write: Write | None, side: int, reads: tuple[_Read, _Read]) -> bool:
        # a launch that the other run does not have, or makes on the other side of the reader
        if write is None or write.kind != "launch":
            return False
        partner = (
            self._pairing.partner(write.number) if side == 0 else self._pairing.partner_in_a(write.number)
        )
        reader = reads[1 - side].launch
        return partner is None or (reader is not None and partner >= reader)

    def _only_called(self, a: Write | None, b: Write | None, reads: tuple[_Read, _Read]) -> Operator:
        # an operator that the other run calls, too, wrote at another point of the program there
        alone = [
            write is not None and not self._timelines[1 - side].calls(write, reads[1 - side].before)
            for side, write in enumerate((a, b))
        ]
        runs: Runs = "ab" if alone[0] == alone[1] else "a" if alone[0] else "b"
        return _called(a, b, runs)

    def _operator(self, a: Write, b: Write, reads: tuple[_Read, _Read]) -> Answer:
        through = (a.name,)
        digests = tuple(
            timeline.digests_of(write) for timeline, write in zip(self._timelines, (a, b), strict=True)
        )
        for number, (ours, theirs) in enumerate(zip(a.reads, b.reads, strict=False)):
            known = [one.before[number].bits if one and number < len(one.before) else "" for one in digests]
            if all(known) and known[0] == known[1]:
                continue
            given = _passed_to(a, known[0], reads[0]), _passed_to(b, known[1], reads[1])
            answer = self._compared(ours, theirs, given)
            if answer is not None and not isinstance(answer, Unknown):
                return _through(answer, through)
        found = [[digest.bits for digest in one.before] for one in digests if one is not None]
        equal = len(found) == 2 and found[0] == found[1]
        return replace(_called(a, b, "ab"), proven=equal, not_deterministic=equal)

    def _allocated(self, reads: tuple[_Read, _Read]) -> Answer:
        steps = [read.step for read in reads]
        if all(step is not None and step.access is not None for step in steps):
            return Host("ab", None, proven=False)  # the interpreter saw that somebody had written it
        return Uninitialised(None)

    def _changed(self, a: Write, b: Write, reads: tuple[_Read, _Read], last: Sequence[bool]) -> Answer:
        # both wrote the same; did it change before it was read, where nobody was seen to write after them?
        changed = [
            _changed_since(write, read) if was_last else None
            for write, read, was_last in zip((a, b), reads, last, strict=True)
        ]
        if not a.left.bits or not b.left.bits:
            return Unknown(f"what launch #{a.number} {a.name} left was not digested")
        runs: Runs = "".join(run for run, one in zip("ab", changed, strict=True) if one)  # type: ignore[assignment]
        proven = bool(runs)
        if not runs:
            if False in changed or not all(last) or reads[0].step is None:
                return None
            runs = "ab"
        writer = _writer(a, b) if a.kind == "launch" else None
        if writer and any(write.stream != read.stream for write, read in zip((a, b), reads, strict=True)):
            return Stream(writer)
        return Host(runs, writer, proven)

    def _unseen(self) -> Answer:
        return Unknown(self._unknown) if self._unknown else Host("ab", None, proven=False)


def _called(a: Write | None, b: Write | None, runs: Runs) -> Operator:
    names = a.name if a else "", b.name if b else ""
    arguments = a.argument if a else "", b.argument if b else ""
    return Operator(names, arguments, runs, proven=True)


def _proven(answer: object) -> bool:
    return isinstance(answer, (Operator, Host)) and answer.proven


def _uninitialised(a: Step, b: Step, position: int) -> tuple[int, int] | None:
    seen = [one.access.uninitialised.get(position) for one in (b, a) if one.access is not None]
    return next((elements for elements in seen if elements), None)


def _read(step: Step, position: int) -> _Read:
    arg = step.signature.args[position]
    assert arg.tensor is not None
    start, _ = span(step.address(position), arg.tensor)
    bits = step.row.digest(position, "before")
    return _Read(start, arg.tensor, bits, step.row.line.stream, step.index, step)


def _passed_to(operator: Write, bits: str, read: _Read) -> _Read:
    # what an operator read, some time before a launch
    return _Read(0, _NOTHING, bits, operator.stream, read.before, None)


def _changed_since(write: Write, read: _Read) -> bool | None:
    left = write.left
    if not left.bits:
        return None
    if read.bits and left.address == read.address and same_digest(left.view, read.meta):
        return left.bits != read.bits
    for one in read.step.rereads if read.step is not None else ():
        if (one.writer, one.argument) == (write.number, write.position):
            return left.bits != one.bits
    return None


def _writer(a: Write | None, b: Write | None) -> Writer:
    one = a or b
    assert one is not None
    return Writer(a.number if a else None, b.number if b else None, one.name, one.argument)


def _through(answer: Cause | Follows, operators: Sequence[str]) -> Cause | Follows:
    if isinstance(answer, (Operator, Host, Uninitialised, Overrun)):
        return replace(answer, through=(*operators, *answer.through))
    return answer


_NOTHING = TensorMeta((0,), (1,), "uint8", "")
