"""Explain the differences that a comparison ignores: memory that two launches neither read nor wrote.

Such memory may differ if nothing ever wrote it, and if no result depends on it. The interpreter records both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tracing.analyze.compare.signature_pair import Slot
from tracing.analyze.compare.timeline.timeline_step import TimelineStep
from tracing.analyze.memory.evidence import evidence_sentence, memory_evidence
from tracing.model import UNDECIDED, Access, NotCovered, TensorMeta
from tracing.store import Run
from tracing.views import element_bytes


@dataclass(frozen=True, slots=True)
class UnwrittenMemory:
    """Elements of an argument that differ in two runs, although the launches access them in neither."""

    rank: int
    launch: int  # in run a
    kernel: str
    argument: str
    elements: int  # at most, that differ
    unwritten: bool  # nothing wrote them in either run; False: something may have

    def __str__(self) -> str:
        """`1 element of y of launch #0 part`."""
        count = f"{self.elements} element{'' if self.elements == 1 else 's'}"
        of = f" of rank {self.rank}" if self.rank else ""
        return f"{count} of {self.argument} of launch #{self.launch}{of} {self.kernel}"


def unwritten_memory(
    a: TimelineStep, b: TimelineStep, ignored: Iterable[Slot], rank: int
) -> Iterator[UnwrittenMemory]:
    """The arguments of two launches that differ where these access nothing, each once.

    ignored -- the digests that differ although what the launches read and wrote is equal
    """
    for position in dict.fromkeys(slot.position for slot in ignored):
        arg = a.signature.args[position]
        if arg.tensor is not None:
            sides = [_elements(step, position, arg.tensor) for step in (a, b)]
            count, unwritten = max(count for count, _ in sides), all(known for _, known in sides)
            if count:  # else they access all of it: another argument names this memory, or an input differs
                yield UnwrittenMemory(rank, a.index, a.kernel.name, arg.name, count, unwritten)


def dependents(run: Run, rank: int) -> list[str]:
    """What a run is known to compute from memory that nothing wrote, in sentences."""
    return [evidence_sentence(one) for one in memory_evidence(run, rank) if one.kind == "unwritten"]


def unfollowed(run: Run) -> Iterator[str]:
    """Why something in a run may depend on memory that nothing wrote, although no evidence says so."""
    if run.info.operators == "none":
        yield f"{UNDECIDED}: {run.name} records no operators"
    for one in run.records(NotCovered):
        if one.what.startswith(UNDECIDED):
            yield f"{one.what} in {run.name}"


def _elements(step: TimelineStep, position: int, meta: TensorMeta) -> tuple[int, bool]:
    # how many the launch accesses not, and whether nothing wrote any of these
    every = math.prod(meta.shape)
    access = step.access
    unwritten = access.unwritten.get(position, (0, 0))[1] if access is not None else 0
    if access is not None and _is_accessed_whole(access, position):
        return 0, True
    bytes_ = _accessed(access, position) if access is not None else None
    if bytes_ is None:
        return unwritten or every, False
    rest = every - bytes_ // element_bytes(meta.dtype)
    return rest, 0 < rest <= unwritten


def _is_accessed_whole(access: Access, position: int) -> bool:
    # boxes exist only of arguments that were accessed in part
    read = position in access.read and position not in access.read_boxes
    return read or (position in access.written and position not in access.written_boxes)


def _accessed(access: Access, position: int) -> int | None:
    # bytes that it read or wrote; None: too many ranges to list
    ranges: list[tuple[int, int]] = []
    for side, boxes, listed in (
        (access.read, access.read_boxes, access.read_ranges),
        (access.written, access.written_boxes, access.written_ranges),
    ):
        if position in side:
            if position not in boxes or position not in listed:
                return None
            edges = listed[position]
            ranges += zip(edges[::2], edges[1::2], strict=True)
    total = end = 0
    for start, stop in sorted(ranges):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total
