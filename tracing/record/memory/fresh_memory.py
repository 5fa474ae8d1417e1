"""Tracks host memory that was allocated uninitialised and not written since."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tracing.digest.host import memory
from tracing.interpreter.gates import Mask
from tracing.launch.memory.memory_block import Bytes, MemoryBlock, logical, strided
from tracing.launch.tensors import tensor_meta
from tracing.upstream.torch.tensor_subclasses import storage_key

BYTES = 1 << 30  # of storages that are watched
_STORAGES = 64
_NOT_COVERED = "reads of uninitialised memory, where more than 1 GiB of it is waiting to be written"


@dataclass(frozen=True, slots=True)
class PartialWrite:
    """A launch that wrote some elements of an argument, and left others unwritten."""

    launch: int
    argument: str
    first: int  # unwritten element
    count: int  # of unwritten elements


@dataclass(slots=True)
class UnwrittenBytes:
    """The unwritten bytes of one storage, and their contents when it was allocated."""

    storage: StorageWeakRef
    address: int
    unwritten: Mask
    copy: Bytes
    writer: PartialWrite | None = None  # the last one of this storage

    def changed(self) -> bool:
        """True if an unobserved write, such as through NumPy, changed it; the storage must be alive."""
        now = memory(self.address, len(self.copy), None)
        return bool(((now != self.copy) & self.unwritten).any())


class FreshMemory:
    """Tracks the memory of `empty` and similar operators until it is written.

    Writes of operators and interpreted launches are observed. A storage that is shared with NumPy, or through
    DLPack, counts as initialised, because its users may write. Other writes are detected if some byte differs
    from a copy: then the whole storage counts as initialised, because the written range is unknown.
    Unobserved writes of equal bytes are not detected.

    Cost: a copy of each storage when it is allocated, and two bytes a byte until it is written.
    """

    def __init__(self, not_covered: Callable[[str, str], None]) -> None:
        self._not_covered = not_covered
        self._fresh: dict[
            int, UnwrittenBytes
        ] = {}  # by address of torch's storage object, which the weak reference keeps
        self._bytes = 0
        self._storages = _STORAGES  # number of storages from which freed ones are dropped

    def __len__(self) -> int:
        return len(self._fresh)

    def allocated(self, tensor: torch.Tensor) -> None:
        """Watch the storage of a tensor that was just allocated; on the host."""
        self._watch(tensor.untyped_storage(), None)

    def grown(self, tensor: torch.Tensor, nbytes: int) -> None:
        """Track the bytes by which a storage grew.

        nbytes -- its previous size; these bytes keep their state
        """
        storage = tensor.untyped_storage()
        unwritten = np.ones(storage.nbytes(), np.bool_)
        earlier = self._drop(storage_key(storage))
        unwritten[:nbytes] = earlier.unwritten[:nbytes] if earlier else False
        self._watch(storage, unwritten)

    def copied(self, tensor: torch.Tensor, mask: Mask, writer: PartialWrite | None) -> None:
        """Note that elements of a tensor are a copy of unwritten ones.

        mask   -- [elements] in logical order
        writer -- the launch that left the copied elements unwritten, if one is known
        """
        storage = tensor.untyped_storage()
        earlier = self._drop(storage_key(storage))
        unwritten = np.zeros(storage.nbytes(), np.bool_) if earlier is None else earlier.unwritten
        mark(unwritten, tensor, mask)
        self._watch(storage, unwritten, writer)

    def wrote(self, tensors: Iterable[torch.Tensor]) -> None:
        """Note that an operator wrote these tensors."""
        for tensor in tensors:
            fresh = self._fresh.get(storage_key(tensor.untyped_storage()))
            if fresh is not None:
                start = tensor.storage_offset() * tensor.element_size()
                strided(fresh.unwritten[start:], tensor_meta(tensor), 1)[...] = False
                self._drop_written(fresh)

    def of(self, tensor: torch.Tensor) -> UnwrittenBytes | None:
        """The unwritten bytes of a tensor's storage; None: all bytes are written."""
        storage = tensor.untyped_storage()
        fresh = self._fresh.get(storage_key(storage))
        if fresh is None:
            return None
        moved = fresh.address != storage.data_ptr() or len(fresh.copy) != storage.nbytes()
        if moved or fresh.changed():
            self._drop(storage_key(storage))
            return None
        return fresh

    def elements(self, tensor: torch.Tensor) -> tuple[int, int] | None:
        """The unwritten elements of a tensor on the host: the first, and how many."""
        fresh = self.of(tensor)
        if fresh is None:
            return None
        start = tensor.storage_offset() * tensor.element_size()
        unwritten = logical(fresh.unwritten[start:], tensor_meta(tensor), 1)
        indices = np.flatnonzero(unwritten.all(axis=1))
        return (int(indices[0]), indices.size) if indices.size else None

    def launched(self, blocks: Iterable[MemoryBlock]) -> None:
        """Note the writes of a launch."""
        for block in blocks:
            for fresh in list(self._fresh.values()):
                start, stop = fresh.address, fresh.address + len(fresh.copy)
                first, last = max(start, block.start), min(stop, block.stop)
                if first < last and not _gone(fresh):
                    fresh.unwritten[first - start : last - start] &= ~block.written_bytes(first, last)
                    self._drop_written(fresh)

    def shared(self, tensor: torch.Tensor) -> None:
        """Note that code outside of torch may write a tensor's storage."""
        self._drop(storage_key(tensor.untyped_storage()))

    def _watch(
        self, storage: torch.UntypedStorage, unwritten: Mask | None, writer: PartialWrite | None = None
    ) -> None:
        nbytes = storage.nbytes()
        if self._bytes + nbytes > BYTES or len(self._fresh) > self._storages:
            self._sweep()
            self._storages = max(_STORAGES, 2 * len(self._fresh))
        if self._bytes + nbytes > BYTES:
            self._not_covered(_NOT_COVERED, "smaller tensors")
        elif nbytes:
            copy = memory(storage.data_ptr(), nbytes, storage).copy()
            unwritten = np.ones(nbytes, np.bool_) if unwritten is None else unwritten
            reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            self._drop(reference.cdata)
            self._fresh[reference.cdata] = UnwrittenBytes(
                reference, storage.data_ptr(), unwritten, copy, writer
            )
            self._bytes += nbytes

    def _drop_written(self, fresh: UnwrittenBytes) -> None:
        if not fresh.unwritten.any():
            self._drop(fresh.storage.cdata)

    def _drop(self, key: int) -> UnwrittenBytes | None:
        fresh = self._fresh.pop(key, None)
        self._bytes -= len(fresh.copy) if fresh else 0
        return fresh

    def _sweep(self) -> None:
        for key, fresh in list(self._fresh.items()):
            if _gone(fresh):
                self._drop(key)


def mark(array: Mask, tensor: torch.Tensor, mask: Mask) -> None:
    """Set the bytes of elements of a tensor.

    array -- [bytes] of the tensor's storage
    mask  -- [elements] in logical order
    """
    view = strided(array[tensor.storage_offset() * tensor.element_size() :], tensor_meta(tensor), 1)
    view |= mask.reshape(*view.shape[:-1], 1) if view.ndim > 1 else np.repeat(mask, tensor.element_size())


def _gone(fresh: UnwrittenBytes) -> bool:
    return bool(fresh.storage.expired())  # type: ignore[no-untyped-call]
