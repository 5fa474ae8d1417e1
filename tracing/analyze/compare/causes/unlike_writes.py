"""Finds why bytes differ that only one run wrote, or that different launches or operators wrote."""

from __future__ import annotations

from dataclasses import replace

from tracing.analyze.compare.cause_kinds import (
    Cause,
    Host,
    OperatorCause,
    OtherPoint,
    OtherTensor,
    Overrun,
    Uninitialised,
    UnknownCause,
)
from tracing.analyze.compare.causes.cause_answer import CauseAnswer, Follows
from tracing.analyze.compare.causes.memory_read import ReadPair
from tracing.analyze.compare.causes.redirected_writes import RedirectedWrites
from tracing.analyze.compare.causes.write_pairs import WritePairs
from tracing.analyze.compare.causes.write_text import operator_cause, part_texts, write_text, writer_of
from tracing.analyze.compare.pairing import Pairing
from tracing.analyze.compare.timeline.memory import Write
from tracing.analyze.compare.timeline.timeline import Timeline


class UnlikeWrites:
    """The writes that the runs do not share, for one process of each."""

    def __init__(
        self, timelines: tuple[Timeline, Timeline], pairing: Pairing, pairs: WritePairs, unknown: str
    ) -> None:
        """unknown -- the reason why the writer of memory is unknown; empty: the host wrote it"""
        self._timelines, self._pairing, self._pairs, self._unknown = timelines, pairing, pairs, unknown
        self._redirected = RedirectedWrites(timelines, pairing, pairs)

    def unseen(self, *, equally_written: bool = False) -> UnknownCause | Host:
        """The cause where neither run recorded a write, or where all recorded writes left equal bits."""
        return UnknownCause(self._unknown) if self._unknown else Host("", None, proven=equally_written)

    def cause(self, a: Write | None, b: Write | None, reads: ReadPair) -> CauseAnswer:
        """The cause, if a write of one run has no counterpart in the other."""
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
            return Overrun(writer_of(ours, theirs), "a" if ours else "b")
        kinds = {one.kind for _, one in writes}
        if redirected := self._redirected.cause(a, b, reads):
            return redirected
        if "allocation" in kinds:
            return Uninitialised(None)
        if kinds <= {"launch", "start"} and a and b:
            if kinds == {"launch"} and self._are_inverted(a, b):
                return Follows()
            return self._other_tensor(a, b, reads) or UnknownCause(
                f"both runs read the same tensor, which {write_text(a)} wrote last in one run "
                f"and {write_text(b)} in the other"
            )
        return self._called(a, b, reads) if "operator" in kinds else self.unseen()

    def other_call(self, a: Write, b: Write, reads: ReadPair) -> OtherTensor | OperatorCause | None:
        """The cause, if two calls of one operator wrote what was read; None: they wrote the same tensor."""
        return self._redirected.of_calls(a, b, reads) or self._other_tensor(a, b, reads)

    def more_calls(self, a: Write, b: Write, reads: ReadPair) -> OperatorCause | None:
        """The cause, if one run calls an operator once more on the tensor that both wrote by a call of it."""
        return self._redirected.of_more_calls(a, b, reads)

    def _other_tensor(self, a: Write, b: Write, reads: ReadPair) -> OtherTensor | None:
        # None: both runs read the same tensor
        same = self._redirected.is_same_tensor(a, b, reads)
        return None if same else OtherTensor(*part_texts(a, b, reads), proven=same is False)

    def _are_inverted(self, a: Write, b: Write) -> bool:
        # each run made the two launches in another order
        ours, theirs = self._pairs.partner(b, 1), self._pairs.partner(a, 0)
        return ours is not None and theirs is not None and ours < a.number and theirs < b.number

    def _is_out_of_order(self, write: Write, side: int, reads: ReadPair) -> bool:
        # a launch that the other run does not have, or makes on the other side of the reader
        if write.kind != "launch" or write.out_of_bounds:
            return False
        partner = self._pairs.partner(write, side)
        return partner is None or partner >= reads[1 - side].before

    def _called(self, a: Write | None, b: Write | None, reads: ReadPair) -> Cause | Follows:
        # both runs call the operator, at different points of the program
        one, other = (write if write is not None and write.kind == "operator" else None for write in (a, b))
        calls_more = [
            write is not None
            and self._calls_more(write, side, reads)
            and not self._redirected.is_created_by(write, (b, a)[side], 1 - side, reads)
            for side, write in enumerate((one, other))
        ]
        if calls_more[0] != calls_more[1]:
            cause = operator_cause(
                one if calls_more[0] else None,
                other if calls_more[1] else None,
                "a" if calls_more[0] else "b",
            )
            as_often = self._calls_as_often(one if calls_more[0] else other)
            return replace(cause, how=OtherPoint()) if as_often else cause
        if a is not None and b is not None and write_text(a) == write_text(b):
            # one call, of which the runs read other parts
            return self._other_tensor(a, b, reads) or replace(operator_cause(one, other, "ab"), proven=False)
        if not any(calls_more) and any(self._differs(write, side) for side, write in enumerate((a, b))):
            return Follows()  # the launch whose result the operator of the other run did not read
        if (
            a is not None
            and b is not None
            and not (any(calls_more) or reads[0].passed or self._pairs.passed_on(a, b))
        ):
            return self._other_tensor(a, b, reads) or operator_cause(one, other, "ab")
        return operator_cause(one, other, "ab")

    def _is_overwritten(self, write: Write, side: int, reads: ReadPair) -> bool:
        # a launch overwrites the result of this one in the other run, where their order is reversed
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
        if write.kind == "operator":
            return self._pairing.is_accused_call(write.name, write.argument, write.call)
        number = write.number if side == 0 else self._pairs.partner(write, side)
        return (
            write.kind == "launch" and number is not None and self._pairing.is_accused(number, write.argument)
        )

    def _calls_more(self, operator: Write, side: int, reads: ReadPair) -> bool:
        # True if a run has called this operator more often than the other run did; a run without records of
        # calls has only the name of the operator that wrote the tensor last
        if operator.number < 0:
            return True
        counts = [
            one.operators.count(operator.name, operator.argument, read.before)
            for one, read in zip(self._timelines, reads, strict=True)
        ]
        return counts[side] > counts[1 - side]

    def _differs(self, write: Write | None, side: int) -> bool:
        # whether the writer is a launch with a reported difference
        if write is None or write.kind != "launch":
            return False
        number = write.number if side == 0 else self._pairs.partner(write, side)
        return number is not None and self._pairing.status(number, write.position) == "differs"

    def _calls_as_often(self, operator: Write | None) -> bool:
        if operator is None or operator.number < 0:
            return False
        a, b = (timeline.operators.total(operator.name, operator.argument) for timeline in self._timelines)
        return a == b
