"""A read of memory in one run: the bytes, their bits, and the position in launch order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from tracing.analyze.compare.timeline.memory import Input, Write, span
from tracing.analyze.compare.timeline.timeline_step import TimelineStep
from tracing.model import TensorMeta
from tracing.views import same_digest

_NOTHING = TensorMeta((0,), (1,), "uint8", "")


class MemoryRead(NamedTuple):
    """One tensor as it was read in one run."""

    address: int
    meta: TensorMeta
    bits: str  # empty: not known
    stream: int
    before: int  # the launches before this one were made
    step: TimelineStep | None = None  # the launch that read it; None: an operator did, or it is a result
    written: bool = False  # the interpreter saw nothing uninitialised in it
    inputs: tuple[Input, ...] = ()  # the memory that was read; of an operator each argument by itself
    passed: bool = False  # an operator copied it, and its digests were not recorded


ReadPair: TypeAlias = tuple[MemoryRead, MemoryRead]
Elements: TypeAlias = tuple[int, int] | None  # first uninitialised element, and their number


def argument_read(step: TimelineStep, position: int) -> MemoryRead:
    """The memory that a launch read as one of its arguments."""
    arg = step.signature.args[position]
    assert arg.tensor is not None
    start, _ = span(step.address(position), arg.tensor)
    bits = step.row.digest(position, "before")
    written = step.access is not None and position not in step.access.uninitialised
    return MemoryRead(start, arg.tensor, bits, step.row.line.stream, step.index, step, written)


def passed_to(operator: Write, read: MemoryRead) -> MemoryRead:
    """The tensors that an operator read before a launch."""
    return MemoryRead(0, _NOTHING, "", operator.stream, read.before, passed=True)


def input_read(one: Input, read: MemoryRead) -> MemoryRead:
    """One tensor that an operator read before a launch; its bits count if one stream orders the writes."""
    streams = {source.stream for source in one.sources if source is not None}
    if one.tensor is None or not one.bits or streams - {0}:
        return MemoryRead(0, _NOTHING, "", 0, read.before, passed=True)
    return MemoryRead(one.address, one.tensor.meta, one.bits, 0, read.before)


def unlike_inputs(a: Sequence[Input], b: Sequence[Input]) -> tuple[list[Input], list[Input]]:
    """The inputs of an operator whose bits are not known to be equal; the order of its inputs is ignored."""
    ours, theirs = list(a), list(b)
    for here in (True, False):  # first at the same position
        for position, one in enumerate(a):
            partner = next(
                (
                    other
                    for n, other in enumerate(b)
                    if one.bits and one.bits == other.bits and other in theirs and (n == position or not here)
                ),
                None,
            )
            if one in ours and partner is not None:
                ours.remove(one)
                theirs.remove(partner)
    return ours, theirs


def changed_since(write: Write, read: MemoryRead) -> bool | None:
    """True if the bytes of a write changed before they were read; None: not known."""
    left = write.left
    if not left.bits:
        return None
    if read.bits and left.address == read.address and same_digest(left.view, read.meta):
        return left.bits != read.bits
    for one in read.step.rereads if read.step is not None else ():
        if (one.writer, one.argument) == (write.number, write.position):
            return left.bits != one.bits
    return None
