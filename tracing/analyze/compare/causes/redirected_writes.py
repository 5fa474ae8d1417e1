"""Finds the launch or operator of both runs that wrote the memory that was read in one run only.

That is an answer only if both runs read the same tensor. A tensor is identified by the first access to its
storage: the number of that call among equal calls, the launch, or the name that the case gave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracing.analyze.compare.cause_kinds import (
    MoreCalls,
    OperatorCause,
    OtherPoint,
    OtherTarget,
    Writer,
    WrittenElsewhere,
)
from tracing.analyze.compare.causes.memory_read import MemoryRead, ReadPair
from tracing.analyze.compare.causes.write_pairs import WritePairs
from tracing.analyze.compare.causes.write_text import input_with, operator_cause
from tracing.analyze.compare.pairing import Pairing
from tracing.analyze.compare.timeline.memory import FirstAccess, Input, PlacedTensor, Write
from tracing.analyze.compare.timeline.operator_calls import CallOnTensor
from tracing.analyze.compare.timeline.timeline import Timeline
from tracing.model import TensorMeta
from tracing.views import dense, extent


class RedirectedWrites:
    """The writes that go to another tensor in one run, for one process of each run."""

    def __init__(self, timelines: tuple[Timeline, Timeline], pairing: Pairing, pairs: WritePairs) -> None:
        self._timelines, self._pairing, self._pairs = timelines, pairing, pairs

    def cause(
        self, a: Write | None, b: Write | None, reads: ReadPair
    ) -> WrittenElsewhere | OperatorCause | None:
        """The first of the two writes that the other run made elsewhere, although both read one tensor."""
        writes = [(one.number, side, one) for side, one in enumerate((a, b)) if one is not None]
        for _, side, write in sorted(one for one in writes if one[2].kind == "launch"):
            if launched := self._launch(write, side, reads):
                return launched
        for _, side, write in writes:
            if write.kind == "operator" and (called := self._operator(write, side, reads)):
                return called
        return None

    def of_calls(self, a: Write, b: Write, reads: ReadPair) -> OperatorCause | None:
        """The later of two equal calls, if only its run made it on this tensor, and both the earlier one."""
        later, side = (a, 0) if a.call > b.call else (b, 1)
        earlier = b if side == 0 else a
        here = input_with(later, reads[side])
        there = input_with(earlier, reads[1 - side])
        if here is None or here.tensor is None or there is None:
            return None
        made, _ = self._timelines[side].operators.results(earlier)
        if not _is_among(made, earlier.address - there.address, earlier.region, here.tensor):
            return None
        return self._operator(later, side, reads)

    def of_more_calls(self, a: Write, b: Write, reads: ReadPair) -> OperatorCause | None:
        """The later of two calls of an operator, if only its run updates this tensor more often.

        Both runs make the earlier one on this tensor, at the same point of the program. An update also reads
        what it overwrites.
        """
        calls = [self._calls_on_read(*one) for one in zip(self._timelines, (a, b), reads, strict=True)]
        more = len(calls[0]) - len(calls[1])
        side, later = (0, a) if more > 0 else (1, b)
        updates = any(one.address == later.address for one in later.reads)
        if not (more and updates and calls[1 - side]):
            return None
        earlier = [made[len(calls[1 - side]) - 1] for made in calls]
        same = self.is_same_tensor(a, b, reads)
        if same is None:
            same = earlier[0].number == earlier[1].number
        if not (same and self._is_shared(*earlier)):
            return None
        total = [one.operators.total(later.name, later.argument) for one in self._timelines]
        sides: tuple[Write | None, Write | None] = (later, None) if side == 0 else (None, later)
        cause = operator_cause(*sides, "a" if side == 0 else "b")
        return replace(cause, how=OtherPoint() if total[0] == total[1] else MoreCalls(abs(more)))

    def _calls_on_read(self, timeline: Timeline, write: Write, read: MemoryRead) -> list[CallOnTensor]:
        # the calls like a write, up to it, on the region of the tensor that it wrote
        given = input_with(write, read)
        if given is None or given.tensor is None or write.call < 0:
            return []
        distance = write.address - given.address
        calls = timeline.operators.calls_on(given.tensor, write)
        return [one for one in calls if _is_among(one.results, distance, write.region, given.tensor)]

    def _is_shared(self, a: CallOnTensor, b: CallOnTensor) -> bool:
        # whether both runs make these equal calls at the same point of the program, and with equal results
        equal = not (a.bits and b.bits) or a.bits == b.bits
        return equal and self._is_same_point(a.launches, b.launches)

    def _is_same_point(self, a: int, b: int) -> bool:
        # whether as many launches had been made, of each run, as the pairing says
        if not a or not b:
            return a == b == 0
        return self._pairing.partner(a - 1) == b - 1

    def is_same_tensor(self, a: Write, b: Write, reads: ReadPair) -> bool | None:
        """Whether both runs read one tensor, in which these writes are; None: it cannot be decided."""
        here, there = (input_with(one, read) for one, read in zip((a, b), reads, strict=True))
        return None if here is None or there is None else self._is_same(here, there, reads)

    def is_created_by(self, operator: Write, write: Write | None, side: int, reads: ReadPair) -> bool:
        """Whether an operator of one run also created the tensor of the other run that has a write.

        side -- of the write
        """
        given = input_with(write, reads[side]) if write is not None else None
        birth = self._timelines[side].born(given.tensor) if given is not None and given.tensor else None
        return birth is not None and (birth.name, birth.arguments) == (operator.name, operator.argument)

    def _launch(self, write: Write, side: int, reads: ReadPair) -> WrittenElsewhere | None:
        partner, there = self._pairs.partner(write, side), 1 - side
        read = self._read_by_both(write, side, reads)
        if partner is None or read is None:
            return None
        here, other = read
        written = self._timelines[there].passed(partner, write.position)
        if written is None or written.distance(other) == write.left.address - here.address:
            return None
        indices = (write.number, partner) if side == 0 else (partner, write.number)
        return WrittenElsewhere(Writer(*indices, write.name, write.argument), "a" if side == 0 else "b")

    def _operator(self, write: Write, side: int, reads: ReadPair) -> OperatorCause | None:
        there = 1 - side
        read = self._read_by_both(write, side, reads)
        if read is None or not self._is_called_as_often(write.name, write.argument, reads):
            return None
        here, other = read
        results, site = self._timelines[there].operators.results(write)
        if not results or _is_among(results, write.address - here.address, write.region, other):
            return None
        sites = (write.site, site) if side == 0 else (site, write.site)
        within = any(one.storage == other.storage for one in results)
        cause = operator_cause(write, write, "a" if side == 0 else "b")
        return replace(
            cause, sites=sites, how=OtherTarget(write.call + 1, "elements" if within else "tensor")
        )

    def _read_by_both(self, write: Write, side: int, reads: ReadPair) -> tuple[Input, PlacedTensor] | None:
        # the tensor with this write, and the same tensor in the other run
        pairs = zip(reads[side].inputs, reads[1 - side].inputs, strict=False)
        here, other = next((pair for pair in pairs if write in pair[0].sources), (None, None))
        if here is None or other is None or other.tensor is None:
            return None
        inputs = (here, other) if side == 0 else (other, here)
        return (here, other.tensor) if self._is_same(*inputs, reads) else None

    def _is_same(self, here: Input, there: Input, reads: ReadPair) -> bool | None:
        if here.tensor is None or there.tensor is None:
            return None
        a, b = (
            one.born(tensor) for one, tensor in zip(self._timelines, (here.tensor, there.tensor), strict=True)
        )
        if a is None or b is None:
            return None
        if a.start != b.start or _layout(here.tensor.meta) != _layout(there.tensor.meta):
            return False
        if a.kind == b.kind == "operator" and a.earlier == b.earlier:
            return a == b
        if not (self._is_identified(a, 0, reads) and self._is_identified(b, 1, reads)):
            return None
        if a.kind == b.kind == "launch":
            return self._pairing.partner(a.number) == b.number and a.position == b.position
        return a._replace(earlier=0) == b._replace(earlier=0)

    def _is_identified(self, birth: FirstAccess, side: int, reads: ReadPair) -> bool:
        # whether the first access has the same number in both runs
        if birth.kind == "launch":
            partner = self._pairing.partner if side == 0 else self._pairing.partner_in_a
            return partner(birth.number) is not None
        return birth.kind == "start" or self._is_called_as_often(birth.name, birth.arguments, reads)

    def _is_called_as_often(self, name: str, arguments: str, reads: ReadPair) -> bool:
        a, b = self._counts(name, arguments, reads)
        return a == b

    def _counts(self, name: str, arguments: str, reads: ReadPair) -> list[int]:
        return [
            one.operators.count(name, arguments, read.before)
            for one, read in zip(self._timelines, reads, strict=True)
        ]


def _is_among(
    results: Sequence[PlacedTensor], distance: int, region: TensorMeta, tensor: PlacedTensor
) -> bool:
    # whether a call wrote this region of a tensor, which begins `distance` bytes from its first element
    return any(one.distance(tensor) == distance and _same_bytes(one.meta, region) for one in results)


def _same_bytes(a: TensorMeta, b: TensorMeta) -> bool:
    if _layout(a) == _layout(b):
        return True
    lengths = [stop - start for start, stop in (extent(a), extent(b))]
    return lengths[0] == lengths[1] and dense(a) and dense(b)


def _layout(meta: TensorMeta) -> tuple[object, ...]:
    return meta.shape, meta.stride, meta.dtype
