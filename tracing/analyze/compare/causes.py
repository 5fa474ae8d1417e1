"""Finds why the two launches of a pair read different bits: the last writer in each run, compared.

The bytes that a kernel reads are traced through the operators that propagated them, to an action that differs
between the two runs, or to a launch whose results are known to differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from tracing.analyze.compare.divergence import (
    Cause,
    Host,
    OperatorCause,
    OtherTensor,
    Overrun,
    Runs,
    StreamCause,
    Uninitialised,
    UnknownCause,
    Writer,
    WrittenElsewhere,
)
from tracing.analyze.compare.memory import Input, Write, span
from tracing.analyze.compare.pairing import Pairing
from tracing.analyze.compare.timeline import Timeline, TimelineStep
from tracing.analyze.compare.write_pairs import WritePair, WritePairs
from tracing.model import TensorMeta, TensorValue
from tracing.views import extent, same_digest

# Operators whose result depends only on their arguments, also where they are given a tensor for its shape.
_CONSTANT = tuple(
    f"aten::{name}"
    for name in ("zeros", "ones", "full", "new_zeros", "new_ones", "new_full", "zero_", "fill_.Scalar", "eye")
)
_END = 1 << 62  # after all launches
_NOTHING = TensorMeta((0,), (1,), "uint8", "")


@dataclass(frozen=True, slots=True)
class Follows:
    """It differs because an earlier launch differs, or because only one run has it."""


CauseAnswer: TypeAlias = Cause | Follows | None  # None: nothing is known to differ


class _Read(NamedTuple):
    # one tensor as it was read in one run
    address: int
    meta: TensorMeta
    bits: str  # empty: not known
    stream: int
    before: int  # the launches before this one were made
    step: TimelineStep | None = None  # the launch that read it; None: an operator did, or it is a result
    written: bool = False  # the interpreter saw nothing uninitialised in it
    inputs: tuple[Input, ...] = ()  # what was read, the arguments of an operator each
    passed: bool = False  # an operator passed it on, and its bits are not known


_Reads: TypeAlias = tuple[_Read, _Read]
_Elements: TypeAlias = tuple[int, int] | None  # uninitialised ones: the first, and how many


class Causes:
    """Answers for one process of each run."""

    def __init__(self, a: Timeline, b: Timeline, pairing: Pairing, unknown: str, unrecorded: str) -> None:
        """unknown    -- the reason why the writer of memory is unknown; empty: the host wrote it
        unrecorded -- why unrecorded launches may have written memory; empty: all were recorded
        """
        self._timelines, self._pairing = (a, b), pairing
        self._unknown, self._unrecorded = unknown, unrecorded
        self._pairs = WritePairs(pairing)
        self._followed: dict[object, CauseAnswer] = {}  # operators whose inputs were looked at

    def of(self, a: TimelineStep, b: TimelineStep, position: int) -> Cause | Follows:
        """The cause of a difference in an argument that two partners read."""
        reads = _read(a, position), _read(b, position)
        self._followed.clear()
        given = [
            Input(read.address, step.sources.get(position, ()), step.tensor(position))
            for read, step in zip(reads, (a, b), strict=True)
        ]
        answer = self._compared(given[:1], given[1:], reads)
        seen = (_uninitialised(a, position), _uninitialised(b, position))
        if not isinstance(answer, Follows) and any(seen) and not _written_otherwise(answer, seen):
            known = answer if isinstance(answer, Uninitialised) else Uninitialised(None)
            return replace(known, elements=seen[1] or seen[0])
        if self._unrecorded and not isinstance(answer, Follows):
            return UnknownCause(self._unrecorded)
        return answer or self._unseen()  # all that was seen to write it left equal bits

    def of_result(self, a: TensorValue, b: TensorValue) -> CauseAnswer:
        """The cause of a difference in a tensor result of the case; call it after all comparisons."""
        sources, reads = [], []
        for timeline, value in zip(self._timelines, (a, b), strict=True):
            stop = value.address + extent(value.meta)[1]
            written = timeline.memory.sources(value.address, stop, value.meta)
            sources.append([Input(value.address, written, timeline.placed(value.address, value.meta))])
            reads.append(_Read(value.address, value.meta, value.digest.bits, 0, _END))
        answer = self._compared(sources[0], sources[1], (reads[0], reads[1]))
        seen = a.uninitialised, b.uninitialised
        if any(seen) and not _written_otherwise(answer, seen):
            return Uninitialised(None, seen[1] or seen[0])
        return UnknownCause(self._unrecorded) if self._unrecorded and answer else answer

    def _compared(self, a: Sequence[Input], b: Sequence[Input], reads: _Reads) -> CauseAnswer:
        reads = reads[0]._replace(inputs=tuple(a)), reads[1]._replace(inputs=tuple(b))
        latest = [
            max((one.order for read in side for one in read.sources if one is not None), default=0)
            for side in (a, b)
        ]
        answers = [self._answer(pair, reads, latest) for pair in self._pairs.of(a, b)]
        causes = [answer for answer in answers if answer is not None]
        return min(causes, key=_rank, default=None)

    def _answer(self, pair: WritePair, reads: _Reads, latest: Sequence[int]) -> CauseAnswer:
        a, b, same = pair
        if a is None or b is None or not same:
            return self._unlike(a, b, reads) if a or b else self._unseen()
        last = [a.order == latest[0], b.order == latest[1]]
        if a.kind == "operator":
            return self._operator(a, b, reads, last)
        if a.kind == "allocation":
            return self._allocated(reads)
        if a.out_of_bounds:
            return Overrun(_writer(a, b), "ab")
        status = self._pairing.status(a.number, a.position)
        if status == "differs":
            return Follows()
        return Uninitialised(_writer(a, b)) if status == "loose" else self._changed(a, b, reads, last)

    # ---- writes that only one run has, or each another one

    def _unlike(self, a: Write | None, b: Write | None, reads: _Reads) -> CauseAnswer:
        writes = [(side, one) for side, one in enumerate((a, b)) if one is not None]
        if any(self._is_out_of_order(one, side, reads) for side, one in writes):
            return Follows()
        if any(
            self._was_accused(one, side) or self._is_overwritten(one, side, reads) for side, one in writes
        ):
            return Follows()
        overrun = next((one for _, one in writes if one.out_of_bounds), None)
        if overrun is not None:
            ours, theirs = (one if one is overrun else None for one in (a, b))
            return Overrun(_writer(ours, theirs), "a" if ours else "b")
        kinds = {one.kind for _, one in writes}
        if elsewhere := self._elsewhere(a, b, reads):
            return elsewhere
        if "allocation" in kinds:
            return Uninitialised(None)
        if kinds <= {"launch", "start"} and a and b:
            if kinds == {"launch"} and self._are_inverted(a, b):
                return Follows()
            return OtherTensor(_written(a), _written(b))
        return self._called(a, b, reads) if "operator" in kinds else self._unseen()

    def _are_inverted(self, a: Write, b: Write) -> bool:
        # each run made the two launches in another order
        ours, theirs = self._pairs.partner(b, 1), self._pairs.partner(a, 0)
        return ours is not None and theirs is not None and ours < a.number and theirs < b.number

    def _is_out_of_order(self, write: Write, side: int, reads: _Reads) -> bool:
        # a launch that the other run does not have, or makes on the other side of the reader
        if write.kind != "launch" or write.out_of_bounds:
            return False
        partner = self._pairs.partner(write, side)
        return partner is None or partner >= reads[1 - side].before

    def _called(self, a: Write | None, b: Write | None, reads: _Reads) -> Cause | Follows:
        # an operator that the other run calls, too, wrote at another point of the program there
        one, other = (write if write is not None and write.kind == "operator" else None for write in (a, b))
        alone = [
            write is not None and self._calls_more(write, side, reads)
            for side, write in enumerate((one, other))
        ]
        if alone[0] != alone[1]:
            cause = _operator(
                one if alone[0] else None, other if alone[1] else None, "a" if alone[0] else "b"
            )
            return replace(cause, elsewhere=self._calls_as_often(one if alone[0] else other))
        if not any(alone) and any(self._differs(write, side) for side, write in enumerate((a, b))):
            return Follows()  # the launch whose result the other run's operator did not find there
        if (
            a is not None
            and b is not None
            and not (any(alone) or reads[0].passed or self._pairs.passed_on(a, b))
        ):
            return OtherTensor(_written(a), _written(b))
        return _operator(one, other, "ab")

    def _is_overwritten(self, write: Write, side: int, reads: _Reads) -> bool:
        # the other run made this launch before one that hides what it wrote, and this run after that one
        partner = self._pairs.partner(write, side) if write.kind == "launch" else None
        if partner is None or write.out_of_bounds:
            return False
        for later in (one for given in reads[1 - side].inputs for one in given.sources):
            if later is not None and later.kind == "launch" and later.number > partner:
                earlier = self._pairs.partner(later, 1 - side)
                if earlier is not None and earlier < write.number:
                    return True
        return False

    def _was_accused(self, write: Write, side: int) -> bool:
        number = write.number if side == 0 else self._pairs.partner(write, side)
        return (
            write.kind == "launch" and number is not None and self._pairing.is_accused(number, write.argument)
        )

    def _elsewhere(self, a: Write | None, b: Write | None, reads: _Reads) -> WrittenElsewhere | None:
        # both runs read the same tensor here, which a launch of both wrote in only one of them
        launches = [
            (write.number, side, write)
            for side, write in enumerate((a, b))
            if write is not None and write.kind == "launch"
        ]
        for number, side, write in sorted(launches):
            partner, there = self._pairs.partner(write, side), 1 - side
            pairs = zip(reads[side].inputs, reads[there].inputs, strict=False)
            here, other = next((pair for pair in pairs if write in pair[0].sources), (None, None))
            if (
                partner is None
                or here is None
                or other is None
                or not self._is_same_tensor(here, other, side)
            ):
                continue
            written = self._timelines[there].passed(partner, write.position)
            distance = write.left.address - here.address
            if written is not None and other.tensor and written.distance(other.tensor) != distance:
                indices = (number, partner) if side == 0 else (partner, number)
                return WrittenElsewhere(
                    Writer(*indices, write.name, write.argument), "a" if side == 0 else "b"
                )
        return None

    def _is_same_tensor(self, here: Input, there: Input, side: int) -> bool:
        # both known by what touched their storage first
        inputs = (here, there) if side == 0 else (there, here)
        a, b = (
            one.born(read.tensor) if read.tensor else None
            for one, read in zip(self._timelines, inputs, strict=True)
        )
        if a is None or b is None or a.start != b.start:
            return False
        if a.kind == b.kind == "launch":
            return self._pairing.partner(a.number) == b.number and a.position == b.position
        return a == b

    def _calls_more(self, operator: Write, side: int, reads: _Reads) -> bool:
        # whether a run has called an operator like this more often than the other one; of a run without
        # calls it is known only that the operator wrote this last
        if operator.number < 0:
            return True
        counts = [one.count(operator, read.before) for one, read in zip(self._timelines, reads, strict=True)]
        return counts[side] > counts[1 - side]

    def _differs(self, write: Write | None, side: int) -> bool:
        # whether a launch wrote it that is known to differ
        if write is None or write.kind != "launch":
            return False
        number = write.number if side == 0 else self._pairs.partner(write, side)
        return number is not None and self._pairing.status(number, write.position) == "differs"

    def _calls_as_often(self, operator: Write | None) -> bool:
        if operator is None or operator.number < 0:
            return False
        a, b = (timeline.total(operator) for timeline in self._timelines)
        return a == b

    def _unseen(self) -> UnknownCause | Host:
        return UnknownCause(self._unknown) if self._unknown else Host("", None, proven=False)

    # ---- the same write in both runs

    def _operator(self, a: Write, b: Write, reads: _Reads, last: Sequence[bool]) -> CauseAnswer:
        if self._is_other_call(a, b, reads):
            return OtherTensor(_written(a), _written(b))
        if a.name.startswith(_CONSTANT):
            return Host("", None) if all(last) and not reads[0].passed else None
        digests = [one.digests_of(write) for one, write in zip(self._timelines, (a, b), strict=True)]
        given = [sorted(digest.bits for digest in one.before) for one in digests if one is not None]
        if len(given) == 2 and given[0] == given[1]:
            return replace(_operator(a, b, "ab"), not_deterministic=True)
        key = a.number, a.position, b.number, b.position
        if key not in self._followed:
            self._followed[key] = None  # while its own inputs are followed
            passed = _passed_to(a, reads[0]), _passed_to(b, reads[1])
            self._followed[key] = self._compared(a.reads, b.reads, passed)
        answer = self._followed[key]
        if isinstance(answer, OtherTensor):
            return replace(_operator(a, b, "ab"), given=(answer.a, answer.b))
        if answer is None or isinstance(answer, UnknownCause):
            return replace(_operator(a, b, "ab"), proven=False)
        return _through(answer, a.name)

    def _is_other_call(self, a: Write, b: Write, reads: _Reads) -> bool:
        # both runs call it equally often, and this input is the result of a different one of these calls
        counts = [
            one.count(write, read.before)
            for one, write, read in zip(self._timelines, (a, b), reads, strict=True)
        ]
        return a.call != b.call and counts[0] == counts[1]

    def _allocated(self, reads: _Reads) -> CauseAnswer:
        if not all(read.written for read in reads):
            return Uninitialised(None)
        return UnknownCause(
            "it was allocated uninitialised, and then lent to the host, which may have written it"
        )

    def _changed(self, a: Write, b: Write, reads: _Reads, last: Sequence[bool]) -> CauseAnswer:
        # both wrote equal bits; did they change before the read, without a recorded later writer?
        if a.kind == "start" and not (a.left.bits and b.left.bits):
            return self._unseen()
        if not a.left.bits or not b.left.bits:
            return UnknownCause(f"what launch #{a.number} {a.name} left was not digested")
        changed = [
            _changed_since(write, read) if was_last else None
            for write, read, was_last in zip((a, b), reads, last, strict=True)
        ]
        runs: Runs = "".join(run for run, one in zip("ab", changed, strict=True) if one)  # type: ignore[assignment]
        if not runs and (False in changed or not all(last) or reads[0].passed):
            return None
        if a.kind == "start" and a.left.bits != b.left.bits and not runs:
            return self._unseen()  # the runs began with other bits
        writer = _writer(a, b) if a.kind == "launch" else None
        if writer and any(write.stream != read.stream for write, read in zip((a, b), reads, strict=True)):
            return StreamCause(writer)
        return Host(runs, writer, proven=not runs or None not in changed)


def _rank(answer: CauseAnswer) -> int:
    # what explains most comes first
    tests: tuple[Callable[[CauseAnswer], bool], ...] = (
        lambda one: isinstance(one, Follows),
        lambda one: isinstance(one, Overrun) and one.runs != "ab",
        lambda one: isinstance(one, WrittenElsewhere),
        lambda one: isinstance(one, (OperatorCause, OtherTensor)) and getattr(one, "proven", True),
        lambda one: isinstance(one, Host) and one.proven,  # in both runs it may have written the same
        lambda one: isinstance(one, Uninitialised),
        lambda one: isinstance(one, Overrun),
        lambda one: not isinstance(one, UnknownCause),
    )
    return next((n for n, test in enumerate(tests) if test(answer)), len(tests))


def _uninitialised(step: TimelineStep, position: int) -> _Elements:
    return step.access.uninitialised.get(position) if step.access is not None else None


def _written_otherwise(answer: CauseAnswer, uninitialised: tuple[_Elements, _Elements]) -> bool:
    # Elements that were uninitialised in one run only were written in the other run: if that write was seen,
    # it is the cause. Two runs that had written alike would both have read uninitialised elements.
    proven = isinstance(answer, (OtherTensor, WrittenElsewhere, StreamCause, Overrun)) or (
        isinstance(answer, (OperatorCause, Host)) and answer.proven
    )
    return proven and None in uninitialised


def _read(step: TimelineStep, position: int) -> _Read:
    arg = step.signature.args[position]
    assert arg.tensor is not None
    start, _ = span(step.address(position), arg.tensor)
    bits = step.row.digest(position, "before")
    written = step.access is not None and position not in step.access.uninitialised
    return _Read(start, arg.tensor, bits, step.row.line.stream, step.index, step, written)


def _passed_to(operator: Write, read: _Read) -> _Read:
    # what an operator read, some time before a launch
    return _Read(0, _NOTHING, "", operator.stream, read.before, passed=True)


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


def _written(write: Write) -> str:
    if write.kind == "launch":
        return f"launch #{write.number} {write.name}"
    return write.name if write.kind == "start" else f"call {write.call + 1} of {write.name}"


def _operator(a: Write | None, b: Write | None, runs: Runs) -> OperatorCause:
    names = a.name if a else "", b.name if b else ""
    arguments = a.argument if a else "", b.argument if b else ""
    return OperatorCause(names, arguments, runs, proven=True)


def _through(answer: Cause | Follows, operator: str) -> Cause | Follows:
    if isinstance(answer, (OperatorCause, Host, WrittenElsewhere, Uninitialised, Overrun)):
        return replace(answer, through=(operator, *answer.through))
    return answer
