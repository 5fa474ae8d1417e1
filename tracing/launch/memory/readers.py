"""The programs that have read each unit of one block of memory, and when."""

from __future__ import annotations

import numpy as np

from tracing.interpreter.gates import Addresses, Mask
from tracing.launch.memory.happens_before import HappensBefore, Integers

_NONE = -1


class Readers:
    """For each unit a linked list of its readers since it was written; units with one history share a list.

    Memory: 4 bytes for each unit, and 12 for each list that a load begins.
    """

    def __init__(self, units: int) -> None:
        self._heads: Integers = np.full(units, _NONE, np.int32)  # by unit, the last reader
        self._cells: Integers = np.zeros((64, 3), np.int32)  # program, time, the reader before it
        self._count = 0

    def read(self, units: Addresses, program: int, time: int) -> None:
        """Note a load by the current program, at a time of HappensBefore."""
        heads, which = np.unique(self._heads[units], return_inverse=True)
        self._heads[units] = self._after(heads, program, time)[which.reshape(-1)]

    def unordered(self, units: Addresses, program: int, order: HappensBefore) -> tuple[int, int] | None:
        """A unit, and an earlier program that read it in no order with the current one."""
        heads = self._heads[units]
        cells = first = np.unique(heads[heads != _NONE])
        while cells.size:
            readers, times, before = self._cells[cells].T
            wrong = ~order.ordered(program, readers, times)
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0])
                return int(units[np.flatnonzero(heads == first[at])[0]]), int(readers[at])
            first, cells = first[before != _NONE], before[before != _NONE]
        return None

    def wrote(self, units: Addresses, program: int) -> None:
        """Note a store by the current program, which every other reader comes before."""
        heads, which = np.unique(self._heads[units], return_inverse=True)
        own = self._own(heads, program)
        heads[~own] = _NONE
        programs, times, _ = self._cells[heads[own]].T
        heads[own] = self._added(programs, times, np.full(programs.shape, _NONE, np.int32))
        self._heads[units] = heads[which.reshape(-1)]

    def _after(self, heads: Integers, program: int, time: int) -> Integers:
        own = self._own(heads, program)
        new = ~own | (self._cells[heads, 1] != time)
        before = np.where(own, self._cells[heads, 2], heads)[new]
        heads[new] = self._added(np.full(before.shape, program), np.full(before.shape, time), before)
        return heads

    def _own(self, heads: Integers, program: int) -> Mask:
        own: Mask = (heads != _NONE) & (self._cells[heads, 0] == program)
        return own

    def _added(self, programs: Integers, times: Integers, before: Integers) -> Integers:
        start, self._count = self._count, self._count + before.size
        while self._count > len(self._cells):
            self._cells = np.concatenate([self._cells, np.zeros_like(self._cells)])
        self._cells[start : self._count] = np.stack([programs, times, before], axis=1)
        return np.arange(start, self._count, dtype=np.int32)
