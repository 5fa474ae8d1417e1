"""The loads and stores of a launch whose programs are executed in batches."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tracing.interpreter.batch.batched_array import BatchedArray
from tracing.interpreter.batch.divergence import OneAtATime
from tracing.interpreter.batch.ownership import SEVERAL, Ownership, Programs
from tracing.interpreter.batch.storage_memory import StorageMemory, storages_of
from tracing.interpreter.gates import AccessKind, Addresses, noted
from tracing.upstream.patch import patched
from tracing.upstream.triton.interpreter import native_interpreter

LARGEST_UNDO = 1 << 30  # bytes, for the stores of one launch


class _Replaced(NamedTuple):
    storage: StorageMemory
    addresses: Addresses
    values: npt.NDArray[Any]

    @property
    def nbytes(self) -> int:
        return self.addresses.nbytes + self.values.nbytes


class LaunchMemory:
    """Executes loads and stores of several programs together, and can undo them.

    Raises OneAtATime for accesses whose result depends on the order of programs, and outside of the
    arguments, before they happen.
    """

    def __init__(self, tensors: Iterable[torch.Tensor], *, readers: bool) -> None:
        """tensors -- the arguments of the launch
        readers -- as for Ownership
        """
        self._owned = [(one, Ownership(one, readers=readers)) for one in storages_of(tensors)]
        self._programs: Programs = np.empty(0, np.int32)
        self._replaced: list[list[_Replaced]] = []  # by the stores of each group of programs
        self._replaced_bytes = 0

    @contextmanager
    def executing(self, programs: Sequence[int]) -> Iterator[None]:
        """While active, loads and stores are those of a group of programs, numbered from 1."""
        self._programs = np.array(programs, np.int32)
        self._replaced.append([])
        with ExitStack() as stack:
            for name, own in (("load", self._load), ("store", self._store)):
                stack.enter_context(patched(native_interpreter, name, _on_this_thread(own)))
            yield

    def undo_group(self) -> None:
        """Restore what the stores of the last group of programs replaced."""
        for one in reversed(self._replaced.pop()):
            one.storage.write(one.addresses, one.values)
            self._replaced_bytes -= one.nbytes

    def undo(self) -> None:
        """Restore what all stores of the launch replaced."""
        while self._replaced:
            self.undo_group()

    def _load(self, pointers: Any, mask: Any, other: Any, dtype: np.dtype[Any]) -> Any:
        together = _joined(self._programs.size, pointers, mask, other)
        lanes, taking_part, others = together or (pointers, mask, other)
        if others.dtype != dtype:
            raise OneAtATime("loads another type than that of the value for masked lanes")
        if taking_part.all():
            storage, addresses = self._access(
                "load", lanes, None, dtype.itemsize, batched=together is not None
            )
            loaded = storage.read(addresses, dtype).reshape(lanes.shape)
        else:
            loaded = np.array(others, order="C")
            if taking_part.any():
                storage, addresses = self._access(
                    "load", lanes, taking_part, dtype.itemsize, batched=together is not None
                )
                loaded[taking_part] = storage.read(addresses, dtype)
        return BatchedArray(loaded) if together else loaded

    def _store(self, pointers: Any, value: Any, mask: Any) -> None:
        together = _joined(self._programs.size, pointers, mask, value)
        lanes, taking_part, values = together or (pointers, mask, value)
        if not taking_part.any():
            return
        chosen = None if taking_part.all() else taking_part
        storage, addresses = self._access(
            "store", lanes, chosen, values.dtype.itemsize, batched=together is not None
        )
        self._keep(storage, addresses, values.dtype)
        storage.write(addresses, values.reshape(-1) if chosen is None else values[chosen])

    def _access(
        self, kind: AccessKind, lanes: Any, mask: Any, size: int, *, batched: bool
    ) -> tuple[StorageMemory, Addresses]:
        addresses = (lanes.reshape(-1) if mask is None else lanes[mask]).view(np.int64)
        storage, owners = self._at(int(addresses.min()), int(addresses.max()) + size)
        programs = functools.partial(self._of_lanes, lanes, mask, batched=batched)
        (owners.store if kind == "store" else owners.load)(addresses, size, programs)
        if noted((kind,), addresses, size) is not None:
            raise OneAtATime("accesses memory that it may not access")
        return storage, addresses

    def _of_lanes(self, lanes: Any, taking_part: Any, *, batched: bool) -> Programs:
        if not batched:
            return self._programs if self._programs.size == 1 else np.array([SEVERAL], np.int32)
        programs = self._programs.reshape(-1, *(1,) * (lanes.ndim - 1))
        each = np.broadcast_to(programs, lanes.shape)
        return each.reshape(-1) if taking_part is None else each[taking_part]

    def _at(self, low: int, high: int) -> tuple[StorageMemory, Ownership]:
        for storage, owners in self._owned:
            if storage.start <= low and high <= storage.stop:
                return storage, owners
        raise OneAtATime("accesses other memory than that of one argument")

    def _keep(self, storage: StorageMemory, addresses: Addresses, dtype: np.dtype[Any]) -> None:
        kept = _Replaced(storage, addresses, storage.read(addresses, dtype))
        self._replaced_bytes += kept.nbytes
        if self._replaced_bytes > LARGEST_UNDO:
            raise OneAtATime(f"stores more than can be undone with {LARGEST_UNDO >> 20} MiB")
        self._replaced[-1].append(kept)


def _on_this_thread(own: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    # the function is the process's; another thread may interpret a function decorated for it
    thread = threading.get_ident()

    def wrapper(original: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            return (own if threading.get_ident() == thread else original)(*arguments)

        return called

    return wrapper


def _joined(programs: int, pointers: Any, *others: Any) -> tuple[Any, ...] | None:
    """[programs, *shape] of each; None if all programs access the same addresses."""
    arrays = (pointers, *others)
    if not any(isinstance(one, BatchedArray) for one in arrays):
        return None
    shape = (programs, *np.shape(pointers))
    ndim = len(shape) - 1
    return tuple(
        np.broadcast_to(one.aligned(ndim) if isinstance(one, BatchedArray) else one, shape) for one in arrays
    )
