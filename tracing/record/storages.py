"""The blocks of memory behind tensors, by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tracing.interpreter.guard import tensors_in_use
from tracing.model import Storage
from tracing.store import RunWriter

_PLACES = 1 << 14  # whose numbers are remembered

Memory: TypeAlias = tuple[int, ...]  # of each tensor: address, address of its storage, bytes of its storage


class Storages:
    """Numbers blocks by address and size; writes a line for each new one."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._numbers: dict[tuple[int, int], int] = {}
        self._places: dict[Memory, tuple[int, ...]] = {}
        self._blocks: npt.NDArray[np.uint64] = np.empty((0, 2), np.uint64)  # sorted; see `_sorted`

    def number(self, address: int, nbytes: int) -> int:
        """The number of a block; whatever lies there later with the same size has the same number."""
        number = self._numbers.get((address, nbytes))
        if number is None:
            number = self._numbers[address, nbytes] = len(self._numbers)
            self._writer.append(Storage(number, address, nbytes))
        return number

    def numbers(self, memory: Memory) -> tuple[int, ...]:
        """The numbers of the blocks of several tensors; 0.2 µs where they are asked for again."""
        found = self._places.get(memory)
        if found is None:
            if len(self._places) >= _PLACES:
                self._places.clear()
            found = self._places[memory] = tuple(map(self.number, memory[1::3], memory[2::3]))
        return found

    def hold(self, addresses: npt.NDArray[np.uint64]) -> bool:
        """Whether [n] integers that are not 0 all are addresses in blocks, past ones included."""
        pointers = addresses[addresses != 0]
        if not pointers.size:
            return False
        starts, stops = self._sorted()
        at = np.searchsorted(starts, pointers, side="right")
        return bool((at > 0).all() and (pointers < stops[at - 1]).all())

    def around(self, address: int) -> tuple[int, int, object] | None:
        """The largest block on the host that an address lies in, of those that were seen or are in use.

        Gives start, stop and what keeps it. Of those that were seen it is not known whether they are still
        there. Cost: where none was seen, a look at every object that Python knows.
        """
        seen = [(start, start + size) for start, size in self._numbers if start <= address < start + size]
        if seen:
            return (*max(seen, key=lambda block: block[1] - block[0]), None)
        for tensor in tensors_in_use():
            storage = tensor.untyped_storage()
            start, stop = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
            if start <= address < stop:
                self.number(start, stop - start)
                return start, stop, storage
        return None

    def _sorted(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        # starts, and the furthest stop of all blocks up to each
        if len(self._blocks) != len(self._numbers):
            blocks = sorted((address, address + nbytes) for address, nbytes in self._numbers)
            self._blocks = np.array(blocks, np.uint64)
            self._blocks[:, 1] = np.maximum.accumulate(self._blocks[:, 1])
        return self._blocks[:, 0], self._blocks[:, 1]


def memory_of(tensors: Iterable[torch.Tensor]) -> Memory:
    """Where tensors lie; 0.2 µs each."""
    found: list[int] = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        found += (tensor.data_ptr(), storage.data_ptr(), storage.nbytes())
    return tuple(found)
