"""Follows values that depend on memory which nothing wrote, through operators of ATen, to the host.

A program may copy such memory and compute with it, as with the padding of a buffer, if it drops the results.
So it is an error only if a number, a shape or a list that Python receives depends on it. A copy of unwritten
elements is unwritten itself: a kernel that overwrites a part of it leaves the rest unwritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tracing.interpreter.gates import Mask
from tracing.launch.memory.memory_block import MemoryBlock, logical, strided
from tracing.launch.tensors import has_memory, tensor_meta, tensors_in
from tracing.model import UNDECIDED, MemoryEvidence
from tracing.operators.effects import Effect
from tracing.record.memory.fresh_memory import FreshMemory, PartialWrite, mark
from tracing.record.memory.operator_dependence import dependence_of
from tracing.record.recording import Recording
from tracing.upstream.torch.tensor_subclasses import storage_key

_BYTES = 64 << 20  # of the arguments of an operator that is followed
_STORAGES = 64
_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


@dataclass(frozen=True, slots=True)
class UnwrittenRead:
    """The first operator that read some elements which nothing had written."""

    operator: str
    where: str  # "file.py:12"
    count: int  # of these elements
    launch: PartialWrite | None  # that wrote other elements of the same storage

    def evidence(self, receiver: str, where: str) -> MemoryEvidence:
        """`receiver`, at `where`, passes a value that depends on these elements to the host."""
        here = f" ({self.where})" if self.where else ""
        if (receiver, where) == (self.operator, self.where):
            sink = f"{receiver} passes {_counted(self.count)} that nothing wrote to the host"
        else:
            read = f"{self.operator} reads {_counted(self.count)} that nothing wrote{here}"
            sink = f"{read}, and {receiver} passes what depends on it to the host"
        of = self.launch
        if of is None:
            return MemoryEvidence(-1, "unwritten", (), sink, where)
        first = f", first [{of.first}]" if of.count > 1 else f", [{of.first}]"
        what = f"leaves {_counted(of.count)} of {of.argument} unwritten{first}; {sink}"
        return MemoryEvidence(of.launch, "unwritten", (of.argument,), what, where)


@dataclass(frozen=True, slots=True)
class Followed:
    """What the results of an operator depend on; for `UnwrittenValues.after`."""

    masks: tuple[Mask, ...]  # of each tensor that it writes
    read: UnwrittenRead
    copied: bool  # the elements of the results are unwritten ones themselves


@dataclass(slots=True)
class _Dependent:
    # the bytes of one storage that depend on what nothing wrote

    storage: StorageWeakRef
    address: int
    mask: Mask
    read: UnwrittenRead


class UnwrittenValues:
    """Reports values that depend on unwritten memory when Python receives them.

    Cost: a look at each tensor that an operator reads while some memory is unwritten; six executions of
    each operator that reads unwritten elements.
    """

    def __init__(self, recording: Recording, fresh: FreshMemory) -> None:
        self._recording, self._fresh = recording, fresh
        self._dependent: dict[int, _Dependent] = {}  # by address of torch's storage object
        self._reported: set[MemoryEvidence] = set()

    def __len__(self) -> int:
        return len(self._dependent)

    def before(
        self, effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any], frame: FrameType | None
    ) -> Followed | None:
        """An operator is about to run; None: no result of it depends on what nothing wrote."""
        elements, reads, copied = {}, [], effect.copies
        for tensor in effect.read(args, kwargs):
            known = self._elements(tensor)
            if known is not None:
                elements[id(tensor)], read = known
                copied = copied and read is None
                reads.append(read or self._first_read(effect.name, tensor, elements[id(tensor)], frame))
        if not reads:
            return None
        every = tensors_in([*args, *kwargs.values()])
        dependence = None
        if effect.name.startswith("aten::") and all(map(_usable, every)) and _bytes(every) <= _BYTES:
            dependence = dependence_of(effect, args, kwargs, elements)
        if dependence is None:
            self._undecided(f"what {effect.name} makes of it at {self._where(frame)}")
            return None
        if dependence.host:
            self._report(reads[0], effect.name, frame)
        followed = Followed(dependence.written, reads[0], copied)
        return followed if any(map(np.any, dependence.written)) else None

    def after(self, followed: Followed, written: Sequence[torch.Tensor]) -> None:
        """An operator has written these tensors, in the order of `Effect.written`."""
        if [len(mask) for mask in followed.masks] != [one.numel() for one in written]:
            return
        for mask, tensor in zip(followed.masks, written, strict=True):
            if mask.any() and _usable(tensor):
                if followed.copied:
                    self._fresh.copied(tensor, mask, followed.read.launch)
                else:
                    mark(self._storage(tensor, followed.read).mask, tensor, mask)

    def wrote(self, tensors: Iterable[torch.Tensor]) -> None:
        """Note that these tensors were overwritten."""
        for tensor in tensors if self._dependent else ():
            known = self._dependent.get(storage_key(tensor.untyped_storage()))
            if known is not None:
                self._view(tensor, known.mask)[...] = False
                if not known.mask.any():
                    del self._dependent[storage_key(tensor.untyped_storage())]

    def launched(self, blocks: Iterable[MemoryBlock]) -> None:
        """Note the writes of a launch."""
        for block in blocks if self._dependent else ():
            for known in self._dependent.values():
                first = max(known.address, block.start)
                last = min(known.address + len(known.mask), block.stop)
                if first < last:
                    known.mask[first - known.address : last - known.address] &= ~block.written_bytes(
                        first, last
                    )

    def elements(self, tensor: torch.Tensor) -> tuple[int, int] | None:
        """Elements of a tensor that are unwritten or depend on such: the first, and how many."""
        known = self._elements(tensor)
        return (int(np.argmax(known[0])), int(known[0].sum())) if known is not None else None

    def listed(self, receiver: str, tensor: torch.Tensor, frame: FrameType | None) -> None:
        """Python receives all elements of a tensor, by a method of it."""
        known = self._elements(tensor)
        if known is not None:
            read = known[1] or self._first_read(receiver, tensor, known[0], frame)
            self._report(read, receiver, frame)

    def shared(self, name: str, tensor: torch.Tensor, frame: FrameType | None) -> None:
        """Code outside of torch receives the memory of a tensor."""
        known = self._elements(tensor)
        if known is not None and (known[1] is not None or not known[0].all()):
            self._undecided(f"what the program makes of it after {name} at {self._where(frame)}")
        self._dependent.pop(storage_key(tensor.untyped_storage()), None)

    def _elements(self, tensor: torch.Tensor) -> tuple[Mask, UnwrittenRead | None] | None:
        # [elements] that are unwritten, or depend on such, and what read these first
        if not _usable(tensor):
            return None
        storage = tensor.untyped_storage()
        dependent, fresh = self._dependent.get(storage_key(storage)), self._fresh.of(tensor)
        if dependent is not None and (dependent.address, len(dependent.mask)) != (
            storage.data_ptr(),
            storage.nbytes(),
        ):
            del self._dependent[storage_key(storage)]
            dependent = None
        start, meta = tensor.storage_offset() * tensor.element_size(), tensor_meta(tensor)
        mask = np.zeros(tensor.numel(), np.bool_)
        if fresh is not None:
            mask |= logical(fresh.unwritten[start:], meta, 1).all(axis=1)
        if dependent is not None:
            mask |= logical(dependent.mask[start:], meta, 1).any(axis=1)
        return (mask, dependent.read if dependent else None) if mask.any() else None

    def _first_read(
        self, name: str, tensor: torch.Tensor, mask: Mask, frame: FrameType | None
    ) -> UnwrittenRead:
        fresh = self._fresh.of(tensor)
        launch = fresh.writer if fresh is not None else None
        return UnwrittenRead(name, self._where(frame), int(mask.sum()), launch)

    def _storage(self, tensor: torch.Tensor, read: UnwrittenRead) -> _Dependent:
        storage = tensor.untyped_storage()
        known = self._dependent.get(storage_key(storage))
        if known is None or len(known.mask) != storage.nbytes():
            if len(self._dependent) >= _STORAGES:
                self._sweep()
            reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            mask = np.zeros(storage.nbytes(), np.bool_)
            known = self._dependent[reference.cdata] = _Dependent(reference, storage.data_ptr(), mask, read)
        return known

    def _sweep(self) -> None:
        for key, known in list(self._dependent.items()):
            if known.storage.expired():  # type: ignore[no-untyped-call]
                del self._dependent[key]

    def _view(self, tensor: torch.Tensor, mask: Mask) -> Mask:
        return strided(mask[tensor.storage_offset() * tensor.element_size() :], tensor_meta(tensor), 1)

    def _where(self, frame: FrameType | None) -> str:
        sites = self._recording.sites
        return sites.line(sites.of(frame))

    def _report(self, read: UnwrittenRead, receiver: str, frame: FrameType | None) -> None:
        evidence = read.evidence(receiver, self._where(frame))
        if evidence not in self._reported:
            self._reported.add(evidence)
            self._recording.writer.append(evidence)

    def _undecided(self, what: str) -> None:
        self._recording.catalogue.not_covered(f"{UNDECIDED}: {what}", "")


def _usable(tensor: torch.Tensor) -> bool:
    plain = type(tensor) in _PLAIN and tensor.device.type == "cpu" and tensor.layout is torch.strided
    return plain and has_memory(tensor)


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(one.numel() * one.element_size() for one in tensors)


def _counted(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"
