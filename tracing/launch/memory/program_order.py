"""Finds memory that one program of a launch writes and another accesses, in no guaranteed order.

The other one reads it, or leaves another value there. Values are compared when a program has ended: a program
may write an element more than once, and only the last value remains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tracing.interpreter.gates import AccessKind, Addresses
from tracing.interpreter.kernel_line import kernel_line

Program: TypeAlias = tuple[int, int, int]
_NOBODY, _SEVERAL = -1, -2


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses of one address whose order a GPU does not guarantee."""

    address: int
    other: Program | None  # None: several programs read it
    writer: Program  # the same as the other one: other threads of this program write it
    overwrites: bool = False  # True: `writer` leaves another value than `other` did; False: `other` reads it
    where: str = ""  # the line that overwrites; empty: the current one

    @property
    def of_threads(self) -> bool:
        """True if threads of one program conflict, and not two programs."""
        return self.other == self.writer


class _Overwritten(NamedTuple):
    # units that earlier programs wrote, and that the current program has just written
    units: Addresses
    writers: npt.NDArray[np.int32]
    before: npt.NDArray[np.uint8]  # [units, bytes of one]
    where: str


class ProgramOrder:
    """The programs that have read and written each unit of one block of memory.

    Programs run one after another. Memory: 8 bytes for each unit. Atomics may order programs: the caller
    then stops tracking.
    """

    def __init__(self, start: int, memory: npt.NDArray[np.uint8], unit: int, *, shifted: bool) -> None:
        """Follow the accesses of a block.

        start   -- address
        memory  -- the block itself, which the launch changes
        unit    -- bytes; what is accessed in smaller parts is not followed
        shifted -- two arguments lie there at different positions: a program that reads and writes them at
                   different addresses has threads that race
        """
        self._start, self._memory, self._unit = start, memory, unit
        count = -(-memory.size // unit)
        self._readers = np.full(count, _NOBODY, np.int32)
        self._writers = np.full(count, _NOBODY, np.int32)
        self._programs: dict[Program, int] = {}
        self._shifted = shifted
        self._loaded: tuple[int, list[Addresses]] = _NOBODY, []  # by the current program
        self._current = _NOBODY
        self._overwritten: list[_Overwritten] = []  # by the current program

    def note(self, kind: AccessKind, addresses: Addresses, size: int, program: Program) -> Conflict | None:
        """Record one load or store that a program is about to make.

        Returns its conflict with an earlier one, or that of the program that has ended.
        """
        number = self._programs.setdefault(program, len(self._programs))
        if number != self._current:
            ended = self.end_program()
            self._current = number
            if ended is not None:
                return ended
        offsets = addresses - self._start
        if size % self._unit or np.any(offsets % self._unit):
            return None
        units = offsets // self._unit
        if size > self._unit:
            units = (units[:, None] + np.arange(size // self._unit)).reshape(-1)
        return self._load(units, number) if kind == "load" else self._store(units, number)

    def end_program(self) -> Conflict | None:
        """Note that the current program has ended; returns a conflict if it left other values."""
        overwritten, self._overwritten = self._overwritten, []
        for one in overwritten:
            differs = (self._content(one.units) != one.before).any(axis=1)
            if differs.any():
                at = int(np.flatnonzero(differs)[0])
                programs = list(self._programs)
                address = self._start + int(one.units[at]) * self._unit
                return Conflict(
                    address, programs[int(one.writers[at])], programs[self._current], True, one.where
                )
        return None

    def _content(self, units: Addresses) -> npt.NDArray[np.uint8]:
        content: npt.NDArray[np.uint8] = self._memory[units[:, None] * self._unit + np.arange(self._unit)]
        return content

    def _load(self, units: Addresses, program: int) -> Conflict | None:
        writers = self._writers[units]
        other = (writers != _NOBODY) & (writers != program)
        readers = self._readers[units]
        self._readers[units] = np.where((readers == _NOBODY) | (readers == program), program, _SEVERAL)
        if self._shifted:
            earlier = self._loaded[1] if self._loaded[0] == program else []
            self._loaded = program, [*earlier, np.unique(units)]
        if not other.any():
            return None
        at = int(np.flatnonzero(other)[0])
        return self._between(units[at], program, int(writers[at]))

    def _store(self, units: Addresses, program: int) -> Conflict | None:
        readers, writers = self._readers[units], self._writers[units]
        self._writers[units] = program
        over = (writers != _NOBODY) & (writers != program)
        if over.any():
            content = self._content(units[over])
            self._overwritten.append(_Overwritten(units[over], writers[over], content, kernel_line()))
        other = (readers != _NOBODY) & (readers != program)
        if other.any():
            at = int(np.flatnonzero(other)[0])
            return self._between(units[at], int(readers[at]), program)
        for loaded in self._loaded[1] if self._shifted and self._loaded[0] == program else ():
            stored = np.unique(units)
            both = np.intersect1d(loaded, stored, assume_unique=True)
            if 0 < both.size < min(loaded.size, stored.size):
                return self._between(both[0], program, program)
        return None

    def _between(self, unit: np.int64, reader: int, writer: int) -> Conflict:
        programs = list(self._programs)
        named = programs[reader] if reader != _SEVERAL else None
        return Conflict(self._start + int(unit) * self._unit, named, programs[writer])
