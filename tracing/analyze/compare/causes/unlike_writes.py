"""Finds why bytes differ that only one run wrote, or that different launches or operators wrote."""

from __future__ import annotations

from dataclasses import replace

from tracing.analyze.compare.causes.cause_answer import CauseAnswer, Follows
from tracing.analyze.compare.causes.memory_read import ReadPair
from tracing.analyze.compare.causes.write_pairs import WritePairs
from tracing.analyze.compare.causes.write_text import operator_cause, part_texts, write_text, writer_of
from tracing.analyze.compare.divergence_kinds import (
    Cause,
    Host,
    OtherTensor,
    Overrun,
    Uninitialised,
    UnknownCause,
    Writer,
    WrittenElsewhere,
)
from tracing.analyze.compare.pairing import Pairing
from tracing.analyze.compare.timeline.memory import Input, Write
from tracing.analyze.compare.timeline.timeline import Timeline


class UnlikeWrites:
    """The writes that the runs do not share, for one process of each."""

    def __init__(
        self, timelines: tuple[Timeline, Timeline], pairing: Pairing, pairs: WritePairs, unknown: str
    ) -> None:
        """unknown -- the reason why the writer of memory is unknown; empty: the host wrote it"""
        self._timelines, self._pairing, self._pairs, self._unknown = timelines, pairing, pairs, unknown

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
        if elsewhere := self._elsewhere(a, b, reads):
            return elsewhere
        if "allocation" in kinds:
            return Uninitialised(None)
        if kinds <= {"launch", "start"} and a and b:
            if kinds == {"launch"} and self._are_inverted(a, b):
                return Follows()
            return OtherTensor(*part_texts(a, b, reads))
        return self._called(a, b, reads) if "operator" in kinds else self.unseen()

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
            write is not None and self._calls_more(write, side, reads)
            for side, write in enumerate((one, other))
        ]
        if calls_more[0] != calls_more[1]:
            cause = operator_cause(
                one if calls_more[0] else None,
                other if calls_more[1] else None,
                "a" if calls_more[0] else "b",
            )
            return replace(cause, elsewhere=self._calls_as_often(one if calls_more[0] else other))
        if a is not None and b is not None and write_text(a) == write_text(b):
            return OtherTensor(*part_texts(a, b, reads))  # one call, of which the runs read other parts
        if not any(calls_more) and any(self._differs(write, side) for side, write in enumerate((a, b))):
            return Follows()  # the launch whose result the operator of the other run did not read
        if (
            a is not None
            and b is not None
            and not (any(calls_more) or reads[0].passed or self._pairs.passed_on(a, b))
        ):
            return OtherTensor(*part_texts(a, b, reads))
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
        number = write.number if side == 0 else self._pairs.partner(write, side)
        return (
            write.kind == "launch" and number is not None and self._pairing.is_accused(number, write.argument)
        )

    def _elsewhere(self, a: Write | None, b: Write | None, reads: ReadPair) -> WrittenElsewhere | None:
        # both runs read the same tensor here; a launch of both runs wrote it in only one of them
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
        # both are identified by the first access to their storage
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

    def _calls_more(self, operator: Write, side: int, reads: ReadPair) -> bool:
        # True if a run has called this operator more often than the other run did; a run without records of
        # calls has only the name of the operator that wrote the tensor last
        if operator.number < 0:
            return True
        counts = [one.count(operator, read.before) for one, read in zip(self._timelines, reads, strict=True)]
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
        a, b = (timeline.total(operator) for timeline in self._timelines)
        return a == b
