"""The bytes that launches of one signature read and write, relative to the storages of their arguments."""

from __future__ import annotations

from typing import NamedTuple

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
    """What launches of one signature touch."""

    reads: tuple[TouchedArgument, ...]
    writes: tuple[TouchedArgument, ...]


def touched_memory(row: Row, signature: Signature) -> SignatureMemory:
    """The memory that launches with digests of these arguments touch."""
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
