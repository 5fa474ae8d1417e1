"""Finds memory that one program of a launch reads and another writes, in no guaranteed order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tracing.interpreter.gates import AccessKind, Addresses

Program: TypeAlias = tuple[int, int, int]
_NOBODY, _SEVERAL = -1, -2


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses of one address whose order a GPU does not guarantee."""

    address: int
    reader: Program | None  # None: several programs read it
    writer: Program  # the same as the reader: other threads of this program write it

    @property
    def of_threads(self) -> bool:
        """True if threads of one program conflict, and not two programs."""
        return self.reader == self.writer


class ProgramOrder:
    """The programs that have read and written each unit of one block of memory.

    Memory: 8 bytes for each unit. Atomics may order programs: the caller then stops tracking.
    """

    def __init__(self, start: int, stop: int, unit: int, *, shifted: bool) -> None:
        """Follow the accesses of a block.

        start, stop -- addresses
        unit        -- bytes; what is accessed in smaller parts is not followed
        shifted     -- two arguments lie there at different positions: a program that reads and writes them at
                       different addresses has threads that race
        """
        self._start, self._unit = start, unit
        count = -(-(stop - start) // unit)
        self._readers = np.full(count, _NOBODY, np.int32)
        self._writers = np.full(count, _NOBODY, np.int32)
        self._programs: dict[Program, int] = {}
        self._shifted = shifted
        self._loaded: tuple[int, list[Addresses]] = _NOBODY, []  # by the current program

    def note(self, kind: AccessKind, addresses: Addresses, size: int, program: Program) -> Conflict | None:
        """Record one load or store by a program; returns its conflict with an earlier one."""
        offsets = addresses - self._start
        if size % self._unit or np.any(offsets % self._unit):
            return None
        units = offsets // self._unit
        if size > self._unit:
            units = (units[:, None] + np.arange(size // self._unit)).reshape(-1)
        number = self._programs.setdefault(program, len(self._programs))
        return self._load(units, number) if kind == "load" else self._store(units, number)

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
        readers = self._readers[units]
        self._writers[units] = program
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
