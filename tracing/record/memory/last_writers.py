"""Tracks the operator outside of Triton that last wrote an input of a launch."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TypeAlias

from tracing.model import TensorMeta
from tracing.record.launches.launch_template import DigestSlots
from tracing.views import Relation, element_bytes, relation

_WRITES = 32  # of one storage that are remembered, the last ones
_Write: TypeAlias = tuple[TensorMeta, str | None]  # what was written, and by which operator; None: a launch


class LastWriters:
    """The operator that wrote each byte range of a storage after the last launch that wrote it."""

    def __init__(self) -> None:
        self.between = between
        # By number of the storage; the compiled form changes this very object. A storage that was allocated
        # anew keeps its key: a dictionary that loses and gains keys is built anew every few of them.
        self.writes: dict[int, tuple[_Write, ...]] = {}

    def wrote(self, operator: str, metas: Sequence[TensorMeta], storages: Sequence[int]) -> None:
        """Note that an operator wrote these tensors; 0.3 µs each where nothing else lies in their storage."""
        for meta, storage in zip(metas, storages, strict=True):
            earlier = self.writes.get(storage)
            if not earlier or (len(earlier) == 1 and earlier[0][0] is meta):
                self.writes[storage] = ((meta, operator),)
            else:
                self.writes[storage] = (*_left(earlier, meta), (meta, operator))

    def allocated(self, storages: Sequence[int]) -> None:
        """Note that these tensors are new: earlier writes to their addresses were to another block."""
        for storage in storages:
            if storage in self.writes:
                self.writes[storage] = ()

    def keep(self, storages: Container[int]) -> None:
        """Forget the writes to all other storages."""
        for number in [one for one in self.writes if one not in storages]:
            del self.writes[number]

    def of(self, slots: DigestSlots) -> dict[int, str]:
        """The operators that last wrote the inputs of a launch, by argument position.

        The launch becomes the writer of its outputs. If several operators wrote a tensor, the last one is
        returned.
        """
        template, storages, writes = slots.template, slots.storages, self.writes
        operators: dict[int, str] = {}
        for i in template.reads:
            operator = _last(writes.get(storages[i], ()), template.metas[i])
            if operator is not None:
                operators[template.positions[i]] = operator
        for i in template.writes:
            if earlier := writes.get(storages[i]):
                left, meta = _left(earlier, template.metas[i]), template.metas[i]
                by_operator = any(operator is not None for _, operator in left)
                writes[storages[i]] = (*left, (meta, None)) if by_operator else ()
        return operators


def _last(writes: Sequence[_Write], meta: TensorMeta) -> str | None:
    return next((operator for one, operator in reversed(writes) if between(meta, one) != "disjoint"), None)


def _left(writes: Sequence[_Write], meta: TensorMeta) -> list[_Write]:
    # those that a later write of `meta` does not overwrite completely
    return [write for write in writes if between(write[0], meta) != "inside"][-_WRITES:]


def between(of: TensorMeta, to: TensorMeta) -> Relation:
    """How the bytes of one tensor relate to those of another one in the same storage."""
    if of is to:
        return "inside"
    start, other = (meta.offset * element_bytes(meta.dtype) for meta in (of, to))
    return relation(of, to, start - other)
