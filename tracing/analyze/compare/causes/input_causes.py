"""Finds why the two launches of a pair read different bits: the last writer in each run, compared.

The bytes that a kernel reads are traced through the operators that propagated them, to an action that differs
between the two runs, or to a launch whose results are known to differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracing.analyze.compare.cause_kinds import (
    Cause,
    Host,
    OperatorCause,
    OtherInput,
    OtherOrder,
    OtherResults,
    OtherTensor,
    Overrun,
    StreamCause,
    Uninitialised,
    UnknownCause,
    WhichRuns,
    WrittenElsewhere,
)
from tracing.analyze.compare.causes.cause_answer import (
    CauseAnswer,
    Follows,
    explanation_rank,
    passed_through,
    with_others,
)
from tracing.analyze.compare.causes.memory_read import (
    Elements,
    MemoryRead,
    ReadPair,
    argument_read,
    changed_since,
    input_read,
    passed_to,
    unlike_inputs,
)
from tracing.analyze.compare.causes.unlike_draws import UnlikeDraws
from tracing.analyze.compare.causes.unlike_writes import UnlikeWrites
from tracing.analyze.compare.causes.write_pairs import WritePair, WritePairs
from tracing.analyze.compare.causes.write_text import operator_cause, writer_of
from tracing.analyze.compare.pairing import Pairing
from tracing.analyze.compare.timeline.chains import DEEP
from tracing.analyze.compare.timeline.memory import Input, Write, may_fill
from tracing.analyze.compare.timeline.timeline import Timeline
from tracing.analyze.compare.timeline.timeline_step import TimelineStep
from tracing.model import TensorValue
from tracing.views import extent

# Operators that read only the shape of a tensor argument, not its contents.
_CONSTANT = tuple(
    f"aten::{name}"
    for name in ("zeros", "ones", "full", "new_zeros", "new_ones", "new_full", "zero_", "fill_.Scalar", "eye")
)
# Operators whose result is the same if their inputs are exchanged, unless they have other arguments.
_COMMUTATIVE = frozenset(
    f"aten::{name}"
    for name in (
        "add.Tensor", "mul.Tensor", "maximum", "minimum", "fmax", "fmin", "hypot", "eq.Tensor", "ne.Tensor",
        "logical_and", "logical_or", "logical_xor",
        "bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor",
    )
)  # fmt: skip
_FROM_PYTHON = "aten::lift_fresh"  # the result of torch.tensor([1, 2]): it computes nothing
_END = 1 << 62  # after all launches


class Causes:
    """Answers for one process of each run."""

    def __init__(self, a: Timeline, b: Timeline, pairing: Pairing, unknown: str, unrecorded: str) -> None:
        """unknown    -- the reason why the writer of memory is unknown; empty: the host wrote it
        unrecorded -- why unrecorded launches may have written memory; empty: all were recorded
        """
        self._timelines, self._pairing = (a, b), pairing
        self._unrecorded = unrecorded
        self._pairs = WritePairs(pairing)
        self._unlike = UnlikeWrites(self._timelines, pairing, self._pairs, unknown)
        self._draws = UnlikeDraws(a.operators, b.operators)
        self._followed: dict[object, CauseAnswer] = {}  # number of operators whose inputs were compared

    def of(self, a: TimelineStep, b: TimelineStep, position: int) -> Cause | Follows:
        """The cause of a difference in an argument that two partners read."""
        reads = argument_read(a, position), argument_read(b, position)
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
        return answer or self._unlike.unseen(equally_written=True)

    def of_result(self, a: TensorValue, b: TensorValue) -> CauseAnswer:
        """The cause of a difference in a tensor result of the case; call it after all comparisons."""
        sources, reads = [], []
        for timeline, value in zip(self._timelines, (a, b), strict=True):
            stop = value.address + extent(value.meta)[1]
            written = timeline.memory.sources(value.address, stop, value.meta)
            sources.append([Input(value.address, written, timeline.placed(value.address, value.meta))])
            reads.append(MemoryRead(value.address, value.meta, value.digest.bits, 0, _END))
        answer = self._compared(sources[0], sources[1], (reads[0], reads[1]))
        seen = a.uninitialised, b.uninitialised
        if any(seen) and not _written_otherwise(answer, seen):
            return Uninitialised(None, seen[1] or seen[0])
        return UnknownCause(self._unrecorded) if self._unrecorded and answer else answer

    def _compared(self, a: Sequence[Input], b: Sequence[Input], reads: ReadPair) -> CauseAnswer:
        reads = reads[0]._replace(inputs=tuple(a)), reads[1]._replace(inputs=tuple(b))
        latest = [
            max((one.order for read in side for one in read.sources if one is not None), default=0)
            for side in (a, b)
        ]
        pairs = sorted(self._pairs.of(a, b), key=_last_order, reverse=True)
        answers = [self._answer(pair, reads, latest) for pair in pairs]
        return _best(answers)

    def _answer(self, pair: WritePair, reads: ReadPair, latest: Sequence[int]) -> CauseAnswer:
        a, b, same = pair
        last = [one is not None and one.order == order for one, order in zip((a, b), latest, strict=True)]
        if a is None or b is None or not same:
            if _was_freed(a, b, reads, last):
                return Host("", None, proven=False)
            return self._unlike.cause(a, b, reads) if a or b else self._unlike.unseen()
        if a.kind == "operator":
            return self._operator(a, b, reads, last)
        if a.kind == "allocation":
            return self._allocated(reads)
        if a.out_of_bounds:
            return Overrun(writer_of(a, b), "ab")
        status = self._pairing.status(a.number, a.position)
        if status == "differs":
            return Follows()
        return Uninitialised(writer_of(a, b)) if status == "loose" else self._changed(a, b, reads, last)

    # ---- the same write in both runs

    def _operator(self, a: Write, b: Write, reads: ReadPair, last: Sequence[bool]) -> CauseAnswer:
        if a.left.bits and a.left.bits == b.left.bits:
            return self._changed(a, b, reads, last)
        if _was_freed(a, b, reads, last):
            return Host("", None, proven=False)
        if self._is_other_call(a, b, reads) and (other := self._unlike.other_call(a, b, reads)):
            return other
        if a.call != b.call and (more := self._unlike.more_calls(a, b, reads)):
            return more
        if a.name.startswith(_CONSTANT):
            return Host("", None) if all(last) and not reads[0].passed else None
        digests = [
            one.operators.digests(write.number) for one, write in zip(self._timelines, (a, b), strict=True)
        ]
        given = [[digest.bits for digest in one.before] for one in digests if one is not None]
        if len(given) == 2 and all(given[0]) and sorted(given[0]) == sorted(given[1]):
            if a.name == _FROM_PYTHON:
                return Host("", None, made=True, sites=(a.site, b.site))
            cause = operator_cause(a, b, "ab")
            if given[0] != given[1]:
                return replace(cause, how=OtherOrder())
            random = self._timelines[0].operators.draws(a.name)
            how = OtherResults("random" if random else "not deterministic", (a.number, b.number))
            return replace(cause, how=how, draws=self._draws.unlike_before(a, b))
        if a.name == _FROM_PYTHON:
            return Host("", None, made=True, proven=False, sites=(a.site, b.site))
        return self._of_inputs(a, b, reads)

    def _of_inputs(self, a: Write, b: Write, reads: ReadPair) -> CauseAnswer:
        # both runs call the operator, and no digest shows that its inputs are equal
        key = a.number, a.position, b.number, b.position
        if key not in self._followed:
            self._followed[key] = None  # marks a cycle: its own inputs are being followed
            self._followed[key] = self._inputs_compared(a, b, reads)
        answer = self._followed[key]
        if isinstance(answer, OtherTensor):
            how = OtherInput(answer.a, answer.b)
            return replace(operator_cause(a, b, "ab"), how=how, proven=answer.proven)
        if not _is_proven(answer) and not _commutes(a) and self._pairs.are_exchanged(a.reads, b.reads):
            return replace(operator_cause(a, b, "ab"), how=OtherOrder())
        if answer is None or isinstance(answer, UnknownCause):
            numbers = (a.call + 1, b.call + 1) if 0 <= a.call != b.call >= 0 else None
            cause = replace(operator_cause(a, b, "ab"), proven=False, numbers=numbers)
            return replace(cause, draws=self._draws.unlike_before(a, b))
        return passed_through(answer, a.name)

    def _inputs_compared(self, a: Write, b: Write, reads: ReadPair) -> CauseAnswer:
        # each input by itself, if the order of the inputs is known
        if a.cut or b.cut:
            return UnknownCause(f"more than {DEEP} operators in a row are not followed back")
        ours, theirs = unlike_inputs(a.reads, b.reads)
        pairs = list(zip(ours, theirs, strict=False))
        alike = len(pairs) == 1 or all(
            same for pair in pairs for *_, same in self._pairs.of(pair[:1], pair[1:])
        )
        if len(ours) != len(theirs) or not alike:
            return self._compared(ours, theirs, (passed_to(a, reads[0]), passed_to(b, reads[1])))
        return _best(
            [
                self._compared([one], [other], (input_read(one, reads[0]), input_read(other, reads[1])))
                for one, other in pairs
            ]
        )

    def _is_other_call(self, a: Write, b: Write, reads: ReadPair) -> bool:
        # both runs call it equally often, and this input is the result of a different one of these calls
        counts = [
            one.operators.count(write.name, write.argument, read.before)
            for one, write, read in zip(self._timelines, (a, b), reads, strict=True)
        ]
        return a.call != b.call and counts[0] == counts[1]

    def _allocated(self, reads: ReadPair) -> CauseAnswer:
        if any(may_fill(given.sources) for read in reads for given in read.inputs):
            return UnknownCause("parts of this memory were written, and whether these fill it is not known")
        if not all(read.written for read in reads):
            return Uninitialised(None)
        return UnknownCause(
            "this memory was allocated uninitialised, and the host program may have written it"
        )

    def _changed(self, a: Write, b: Write, reads: ReadPair, last: Sequence[bool]) -> CauseAnswer:
        # both wrote equal bits; did they change before the read, without a recorded later writer?
        if a.kind == "start" and not (a.left.bits and b.left.bits):
            return self._unlike.unseen()
        if not a.left.bits or not b.left.bits:
            return UnknownCause(f"the outputs of launch #{a.number} {a.name} have no digests")
        changed = [
            changed_since(write, read) if was_last else None
            for write, read, was_last in zip((a, b), reads, last, strict=True)
        ]
        runs: WhichRuns = "".join(run for run, one in zip("ab", changed, strict=True) if one)  # type: ignore[assignment]
        if a.kind == "start" and a.left.bits != b.left.bits and not runs:
            return self._unlike.unseen()  # the initial bits of the runs differ
        if not runs and (False in changed or not all(last) or reads[0].passed):
            return None
        writer = writer_of(a, b) if a.kind == "launch" else None
        if writer and any(write.stream != read.stream for write, read in zip((a, b), reads, strict=True)):
            return StreamCause(writer)
        operator = a.name if a.kind == "operator" else ""
        return Host(runs, writer, proven=not runs or None not in changed, operator=operator)


def _was_freed(a: Write | None, b: Write | None, reads: ReadPair, last: Sequence[bool]) -> bool:
    # other bits than what was written last: the memory has another owner now, as a checkpoint that was loaded
    writes = zip((a, b), reads, last, strict=True)
    return any(
        write is not None and was_last and changed_since(write, read) for write, read, was_last in writes
    )


def _is_proven(answer: CauseAnswer) -> bool:
    if isinstance(answer, (OperatorCause, OtherTensor, Host)):
        return answer.proven
    return answer is not None and not isinstance(answer, UnknownCause)


def _commutes(operator: Write) -> bool:
    return operator.name in _COMMUTATIVE and not operator.argument


def _best(answers: Sequence[CauseAnswer]) -> CauseAnswer:
    causes = [answer for answer in answers if answer is not None]
    return with_others(min(causes, key=explanation_rank, default=None), causes)


def _last_order(pair: WritePair) -> int:
    return max((one.order for one in (pair.a, pair.b) if one is not None), default=0)


def _uninitialised(step: TimelineStep, position: int) -> Elements:
    return step.access.uninitialised.get(position) if step.access is not None else None


def _written_otherwise(answer: CauseAnswer, uninitialised: tuple[Elements, Elements]) -> bool:
    # If elements were uninitialised in one run only, the other run wrote them: that write, if it was
    # recorded, is the cause.
    named = isinstance(answer, (OtherTensor, WrittenElsewhere, StreamCause, Overrun, OperatorCause, Host))
    return named and _is_proven(answer) and None in uninitialised
