"""The memory blocks of tensors, numbered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tracing.interpreter.guard import tensors_in_use
from tracing.model import Storage
from tracing.store import RunWriter
from tracing.store.numbers import Numbers

_REMEMBERED = 1 << 14  # storages whose numbers are remembered

# Gives the block of memory that an address lies in, of those that are known: start, stop, and what keeps it.
Reach: TypeAlias = Callable[[int], tuple[int, int, object] | None]
# of each tensor: address, address of its storage, bytes of its storage
TouchedMemory: TypeAlias = tuple[int, ...]


class Storages:
    """Numbers blocks by address and size; writes a line for each new one."""

    def __init__(self, writer: RunWriter) -> None:
        self._segments = writer.segments
        self._segment = 0
        self._numbers: Numbers[tuple[int, int]] = Numbers(
            writer, lambda n, block: Storage(n, *block), held=True
        )
        self._numbers_of: dict[TouchedMemory, tuple[int, ...]] = {}
        self._changes = 0  # of `_numbers`, when `_blocks` was made
        self._blocks: npt.NDArray[np.uint64] = np.empty((0, 2), np.uint64)  # sorted; see `_sorted`

    def number(self, address: int, nbytes: int) -> int:
        """The number of a block; whatever lies there later with the same size has the same number."""
        return self._numbers.of((address, nbytes))

    def numbers(self, memory: TouchedMemory) -> tuple[int, ...]:
        """The numbers of the blocks of several tensors; 0.2 µs for blocks that were numbered before."""
        if self._segments is not None and self._segment != self._segments.number:
            self._segment = self._segments.number
            self._numbers_of.clear()
        numbers = self._numbers_of.get(memory)
        if numbers is None:
            if len(self._numbers_of) >= _REMEMBERED:
                self._numbers_of.clear()
            numbers = self._numbers_of[memory] = tuple(map(self.number, memory[1::3], memory[2::3]))
        return numbers

    def in_use(self) -> set[int]:
        """The numbers of the blocks that are remembered."""
        return self._numbers.in_use()

    def hold(self, addresses: npt.NDArray[np.uint64]) -> bool:
        """True if all of [n] integers except 0 are addresses in blocks, freed ones included."""
        pointers = addresses[addresses != 0]
        if not pointers.size:
            return False
        starts, stops = self._sorted()
        at = np.searchsorted(starts, pointers, side="right")
        return bool((at > 0).all() and (pointers < stops[at - 1]).all())

    def reach(self) -> Reach:
        """Gives, for an address, the largest block on the host that it lies in, of those seen or in use.

        A block that was seen earlier may have been freed. Cost: at the first address that
        lies in none of these, a look at every object that Python knows.
        """
        in_use: list[tuple[int, int, object]] | None = None

        def around(address: int) -> tuple[int, int, object] | None:
            nonlocal in_use
            blocks = [(start, start + size, None) for start, size in self._numbers]
            block = _around(address, blocks)
            if block is None:
                if in_use is None:
                    in_use = [_block_of(tensor) for tensor in tensors_in_use()]
                block = _around(address, in_use)
            return block

        return around

    def _sorted(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        # starts, and the furthest stop of all blocks up to each
        if self._changes != self._numbers.changes:
            self._changes = self._numbers.changes
            blocks = sorted((address, address + nbytes) for address, nbytes in self._numbers)
            self._blocks = np.array(blocks, np.uint64).reshape(-1, 2)
            self._blocks[:, 1] = np.maximum.accumulate(self._blocks[:, 1])
        return self._blocks[:, 0], self._blocks[:, 1]


def _block_of(tensor: torch.Tensor) -> tuple[int, int, object]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes(), storage


def _around(address: int, blocks: Iterable[tuple[int, int, object]]) -> tuple[int, int, object] | None:
    holding = [block for block in blocks if block[0] <= address < block[1]]
    return max(holding, key=lambda block: block[1] - block[0], default=None)


def memory_of(tensors: Iterable[torch.Tensor]) -> TouchedMemory:
    """Addresses and sizes of tensors and their storages; 0.2 µs each."""
    numbers: list[int] = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        numbers += (tensor.data_ptr(), storage.data_ptr(), storage.nbytes())
    return tuple(numbers)
