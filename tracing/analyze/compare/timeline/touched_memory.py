"""The bytes that launches of one signature read and write, relative to the storages of their arguments."""

from __future__ import annotations

from typing import NamedTuple

from tracing.analyze.compare.timeline.memory import Sources, Write, WrittenBits
from tracing.digest.columns import Row
from tracing.model import Signature, TensorMeta
from tracing.views import extent


class TouchedArgument(NamedTuple):
    """An argument that a launch reads or writes."""

    position: int
    tensor: int  # its number among the tensors
    name: str
    start: int  # bytes from the start of the storage
    stop: int
    meta: TensorMeta
    before: int  # which of the launch's digests; -1: none was taken
    after: int


class SignatureMemory(NamedTuple):
    """The memory that launches of one signature read and write."""

    reads: tuple[TouchedArgument, ...]
    writes: tuple[TouchedArgument, ...]


def touched_memory(row: Row, signature: Signature) -> SignatureMemory:
    """The memory that launches with this signature, and digests of these arguments, read and write."""
    before = {position: n for n, position in enumerate(row.before)}
    after = {position: n for n, position in enumerate(row.after, len(row.before))}
    reads, writes, tensors = [], [], 0
    for position, arg in enumerate(signature.args):
        if arg.tensor is None:
            continue
        start, stop = extent(arg.tensor)
        digests = before.get(position, -1), after.get(position, -1)
        one = TouchedArgument(position, tensors, arg.name, start, stop, arg.tensor, *digests)
        tensors += 1
        if arg.reads:
            reads.append(one)
        if arg.writes:
            writes.append(one)
    return SignatureMemory(tuple(reads), tuple(writes))


def with_writer(sources: Sources, operator: str, touched: TouchedArgument, start: int) -> Sources:
    """The sources of an argument in a run without the calls of operators, which names its last writer."""
    top = sources[0] if sources else None
    if top is not None and top.kind == "operator":
        return sources
    return (
        Write("operator", -1, 0, operator, "", start, touched.meta, WrittenBits(start, touched.meta, "")),
    )
