"""Finds launches in a row that are launched alike, and read and wrote equal bits."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tracing.digest.columns import Row
from tracing.model import Kernel, Signature
from tracing.store import Run, rank_of

_Content: TypeAlias = tuple[str, Signature, list[str]]


def equal_launches(run: Run, rank: int, index: int) -> range:
    """The launches of a process around launch `index` that are equal to it, without others between them.

    Launches whose bits were not recorded are equal to no other.

    Cost: a pass over the launches of the rank, some 4 µs each.
    """
    for process in run.processes():
        if rank_of(process) == rank and index in (equal := _around(run, process, index)):
            return equal
    return range(index, index + 1)


def _around(run: Run, process: str, index: int) -> range:
    known = {number: _alike(*one) for number, one in run.signatures(process).items()}
    equal, last = range(0), None
    for row in run.rows(process):
        content, number = _content(row, *known[row.line.signature]), row.line.index
        if content is not None and content == last and number == equal.stop:
            equal = range(equal.start, number + 1)
        elif index in equal:
            break
        else:
            equal = range(number, number + 1)
        last = content
    return equal


def _alike(kernel: Kernel, signature: Signature) -> tuple[str, Signature]:
    # equal for launches that are launched alike
    return kernel.hash, msgspec.structs.replace(signature, id=0, kernel=0)


def _content(row: Row, code: str, signature: Signature) -> _Content | None:
    # None: not all bits are known
    tensors = [(n, arg) for n, arg in enumerate(signature.args) if arg.tensor is not None]
    bits = [row.digest(n, "before") for n, arg in tensors if arg.reads]
    bits += [row.digest(n, "after") for n, arg in tensors if arg.writes]
    return (code, signature, bits) if bits and all(bits) else None
