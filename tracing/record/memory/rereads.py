"""Digests a writer's view once more when a launch reads the same memory through a different view.

The digest before a launch is that of the view that it reads. If the last launch that wrote the memory used
another view, the two digests are not comparable: only the writer's view shows whether it was written in
between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tracing.digest.host import bits
from tracing.launch.tensors import tensor_meta
from tracing.model import Reread, TensorMeta
from tracing.upstream.torch.constructors import empty
from tracing.upstream.torch.tensor_subclasses import storage_key
from tracing.views import element_bytes, relation

_BYTES = 16 << 20  # of a view that is digested a second time
_STORAGES = 64
_NOT_COVERED = "what was written between two launches, where they use other views, of more than 16 MiB"


@dataclass(frozen=True, slots=True)
class _Write:
    launch: int
    position: int
    meta: TensorMeta


@dataclass(frozen=True, slots=True)
class _Storage:
    reference: StorageWeakRef  # weak reference that shows whether the memory was freed
    address: int
    nbytes: int
    writes: list[_Write]  # writes that nothing has overwritten


class Rereads:
    """Remembers the last writes of launches on the host."""

    def __init__(self, not_covered: Callable[[str, str], None]) -> None:
        self._not_covered = not_covered
        self._storages: dict[int, _Storage] = {}  # by address of torch's storage object
        self._most = _STORAGES

    def __len__(self) -> int:
        return len(self._storages)

    def read(self, launch: int, tensors: Iterable[tuple[int, torch.Tensor]]) -> list[Reread]:
        """The reads of the next launch through other views than the memory was written through.

        tensors -- argument positions and what it reads there
        """
        return [
            Reread(launch, position, write.launch, write.position, digest)
            for position, tensor in tensors
            for write, digest in self._current_bits(tensor)
        ]

    def _current_bits(self, tensor: torch.Tensor) -> Iterator[tuple[_Write, str]]:
        known = self._storages.get(storage_key(tensor.untyped_storage()))
        meta = tensor_meta(tensor) if known else None
        for write in known.writes if known else ():
            if meta is None or write.meta == meta or _between(write.meta, meta) == "disjoint":
                continue
            view = _view(tensor, write.meta)
            if view.numel() * view.element_size() > _BYTES:
                self._not_covered(_NOT_COVERED, "smaller tensors")
            else:
                yield write, bits(view)[0]

    def wrote(self, launch: int, tensors: Sequence[tuple[int, torch.Tensor]]) -> None:
        """Note that a launch has written these.

        tensors -- argument positions and the tensors that it wrote
        """
        self.overwritten([tensor for _, tensor in tensors])
        for position, tensor in tensors:
            storage = tensor.untyped_storage()
            key = storage_key(storage)
            if key not in self._storages:
                self._sweep()
                reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                self._storages[key] = _Storage(reference, storage.data_ptr(), storage.nbytes(), [])
            self._storages[key].writes.append(_Write(launch, position, tensor_meta(tensor)))

    def overwritten(self, tensors: Iterable[torch.Tensor]) -> None:
        """Note that these bytes were overwritten, so earlier results of launches are gone."""
        for tensor in tensors:
            known = self._storages.get(storage_key(tensor.untyped_storage()))
            if known is not None and known.writes:
                meta = tensor_meta(tensor)
                known.writes[:] = [one for one in known.writes if _between(one.meta, meta) == "disjoint"]

    def lost(self, start: int, stop: int) -> None:
        """Note a write to unknown bytes between two addresses."""
        for known in self._storages.values():
            if known.address < stop and start < known.address + known.nbytes:
                known.writes.clear()

    def _sweep(self) -> None:
        if len(self._storages) >= self._most:
            gone = [key for key, known in self._storages.items() if known.reference.expired()]  # type: ignore[no-untyped-call]
            for key in gone:
                del self._storages[key]
            self._most = max(_STORAGES, 2 * len(self._storages))


def _between(of: TensorMeta, to: TensorMeta) -> str:
    start, other = (meta.offset * element_bytes(meta.dtype) for meta in (of, to))
    return relation(of, to, start - other)


def _view(tensor: torch.Tensor, meta: TensorMeta) -> torch.Tensor:
    dtype = getattr(torch, meta.dtype)
    layout = meta.offset, meta.shape, meta.stride
    return empty(0, dtype=dtype, device="cpu").set_(tensor.untyped_storage(), *layout)
