"""The memory of one storage, as arrays of elements."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tracing.interpreter.batch.divergence import OneAtATime
from tracing.interpreter.gates import Addresses


class StorageMemory:
    """Reads and writes elements by address, several times as fast as the interpreter's native functions."""

    def __init__(self, start: int, stop: int, unit: int) -> None:
        """start, stop -- addresses
        unit        -- bytes of the smallest element that an argument has there
        """
        self.start, self.stop, self.unit = start, stop, unit
        self._bytes = np.ctypeslib.as_array((ctypes.c_uint8 * (stop - start)).from_address(start))
        self._elements: dict[np.dtype[Any], npt.NDArray[Any]] = {}

    def read(self, addresses: Addresses, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """[lanes] the elements at addresses; raises OneAtATime if one is not aligned."""
        return self._of(dtype).take(self._indices(addresses, dtype.itemsize))

    def write(self, addresses: Addresses, values: npt.NDArray[Any]) -> None:
        """Replace the elements at addresses; of several for one address the last one stays."""
        self._of(values.dtype)[self._indices(addresses, values.dtype.itemsize)] = values

    def _of(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        if dtype not in self._elements:
            whole = len(self._bytes) // dtype.itemsize * dtype.itemsize
            self._elements[dtype] = self._bytes[:whole].view(dtype)
        return self._elements[dtype]

    def _indices(self, addresses: Addresses, size: int) -> Addresses:
        offsets = addresses - self.start
        if size == 1:
            return offsets
        if int(np.bitwise_or.reduce(offsets)) & (size - 1):
            raise OneAtATime("accesses parts of elements")
        offsets >>= size.bit_length() - 1
        return offsets


def storages_of(tensors: Iterable[torch.Tensor]) -> Iterator[StorageMemory]:
    """The memory of tensors; storages that share memory are one."""
    ranges = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if storage.nbytes():
            ranges.append((storage.data_ptr(), storage.data_ptr() + storage.nbytes(), tensor.element_size()))
    merged: list[tuple[int, int, int]] = []
    for start, stop, unit in sorted(ranges):
        if merged and start < merged[-1][1]:
            first, last, smallest = merged.pop()
            merged.append((first, max(stop, last), min(unit, smallest)))
        else:
            merged.append((start, stop, unit))
    return (StorageMemory(*one) for one in merged)
