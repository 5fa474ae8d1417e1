"""Finds memory that one program of a launch writes and another accesses, in no guaranteed order.

The other one reads it, or leaves another value there. Values are compared when a program has ended: a program
may write an element more than once, and only the last value remains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tracing.interpreter.gates import Addresses, Mask
from tracing.interpreter.kernel_line import kernel_line
from tracing.launch.memory.happens_before import HappensBefore, Integers, Program
from tracing.launch.memory.readers import Readers

ProgramAccess: TypeAlias = Literal["load", "volatile load", "store", "atomic"]
ConflictKind: TypeAlias = Literal["read", "overwrite", "store and atomic", "load and atomic"]
_NOBODY = -1


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses of one address whose order a GPU does not guarantee."""

    address: int
    other: Program
    writer: Program  # the same as the other one: other threads of this program write it
    kind: ConflictKind = "read"  # what `other` does
    where: str = ""  # the line that overwrites; empty: the current one

    @property
    def of_threads(self) -> bool:
        """True if threads of one program conflict, and not two programs."""
        return self.other == self.writer

    @property
    def decided(self) -> bool:
        """False: a load of what an atomic changes, as to save the atomic, may have no effect."""
        return self.kind != "load and atomic"


class _Overwritten(NamedTuple):
    # units that earlier programs wrote, and that the current program has just written
    units: Addresses
    writers: Integers
    before: npt.NDArray[np.uint8]  # [units, bytes of one]
    where: str


class _Last:
    # the last program that accessed each unit, and when
    def __init__(self, units: int) -> None:
        self.programs: Integers = np.full(units, _NOBODY, np.int32)
        self.times: Integers = np.zeros(units, np.int32)

    def note(self, units: Addresses, program: int, time: int) -> None:
        self.programs[units], self.times[units] = program, time

    def unordered(self, units: Addresses, program: int, order: HappensBefore) -> Mask:
        # [units] True where another program did, in no order with what the current one does
        others = self.programs[units]
        wrong: Mask = (others != _NOBODY) & (others != program)
        if wrong.any():
            wrong[wrong] = ~order.ordered(program, others[wrong], self.times[units[wrong]])
        return wrong


class ProgramOrder:
    """The programs that have read and written each unit of one block of memory.

    Programs run one after another. Memory: 12 bytes for each unit, and 8 more where atomics are.
    """

    def __init__(
        self, start: int, memory: npt.NDArray[np.uint8], unit: int, order: HappensBefore, *, shifted: bool
    ) -> None:
        """Follow the accesses of a block.

        start   -- address
        memory  -- the block itself, which the launch changes
        unit    -- bytes; what is accessed in smaller parts is not followed
        order   -- that of the launch
        shifted -- two arguments lie there at different positions: a program that reads and writes them at
                   different addresses has threads that race
        """
        self._start, self._memory, self._unit, self._order = start, memory, unit, order
        self._count = -(-memory.size // unit)
        self._readers, self._writers = Readers(self._count), _Last(self._count)
        self._atomics: _Last | None = None
        self._shifted = shifted
        self._loaded: tuple[int, list[Addresses]] = _NOBODY, []  # by the current program
        self._current = _NOBODY
        self._overwritten: list[_Overwritten] = []  # by the current program

    def note(self, access: ProgramAccess, addresses: Addresses, size: int, program: int) -> Conflict | None:
        """Record an access that a program is about to make.

        access  -- an atomic or a volatile load is noted in the order of the launch before
        program -- its number in that order

        Returns its conflict with an earlier one, or that of the program that has ended.
        """
        if program != self._current:
            ended = self.end_program()
            self._current = program
            if ended is not None:
                return ended
        offsets = addresses - self._start
        if size % self._unit or np.any(offsets % self._unit):
            return None
        units = offsets // self._unit
        if size > self._unit:
            units = (units[:, None] + np.arange(size // self._unit)).reshape(-1)
        followers = {
            "load": self._load,
            "volatile load": self._poll,
            "store": self._store,
            "atomic": self._atomic,
        }
        return followers[access](units, program)

    def end_program(self) -> Conflict | None:
        """Note that the current program has ended; returns a conflict if it left other values."""
        overwritten, self._overwritten = self._overwritten, []
        for one in overwritten:
            differs = (self._content(one.units) != one.before).any(axis=1)
            if differs.any():
                at = int(np.flatnonzero(differs)[0])
                writer = int(one.writers[at])
                return self._between(one.units[at], writer, self._current, "overwrite", one.where)
        return None

    def _content(self, units: Addresses) -> npt.NDArray[np.uint8]:
        content: npt.NDArray[np.uint8] = self._memory[units[:, None] * self._unit + np.arange(self._unit)]
        return content

    def _load(self, units: Addresses, program: int) -> Conflict | None:
        self._readers.read(units, program, self._order.time)
        if self._shifted:
            earlier = self._loaded[1] if self._loaded[0] == program else []
            self._loaded = program, [*earlier, np.unique(units)]
        return self._poll(units, program) or self._with_atomics(units, program, "load and atomic")

    def _poll(self, units: Addresses, program: int) -> Conflict | None:
        return self._with_store(units, program, "read")

    def _store(self, units: Addresses, program: int) -> Conflict | None:
        over = self._writers.unordered(units, program, self._order)
        if over.any():
            writers, content = self._writers.programs[units[over]], self._content(units[over])
            self._overwritten.append(_Overwritten(units[over], writers, content, kernel_line()))
        self._writers.note(units, program, self._order.time)
        if (read := self._readers.unordered(units, program, self._order)) is not None:
            return self._between(read[0], read[1], program, "read")
        self._readers.wrote(units, program)
        if (changed := self._with_atomics(units, program, "store and atomic")) is not None:
            return changed
        if self._atomics is not None:
            self._atomics.programs[units] = _NOBODY
        for loaded in self._loaded[1] if self._shifted and self._loaded[0] == program else ():
            stored = np.unique(units)
            both = np.intersect1d(loaded, stored, assume_unique=True)
            if 0 < both.size < min(loaded.size, stored.size):
                return self._between(both[0], program, program, "read")
        return None

    def _atomic(self, units: Addresses, program: int) -> Conflict | None:
        if self._atomics is None:
            self._atomics = _Last(self._count)
        self._atomics.note(units, program, self._order.time - 1)  # it comes before what it orders
        if (stored := self._with_store(units, program, "store and atomic")) is not None:
            return stored
        if (read := self._readers.unordered(units, program, self._order)) is not None:
            return self._between(read[0], read[1], program, "load and atomic")
        return None

    def _with_store(self, units: Addresses, program: int, kind: ConflictKind) -> Conflict | None:
        wrong = self._writers.unordered(units, program, self._order)
        if not wrong.any():
            return None
        unit = units[wrong][0]
        return self._between(unit, program, self._writers.programs[unit], kind)

    def _with_atomics(self, units: Addresses, program: int, kind: ConflictKind) -> Conflict | None:
        # atomics at one address are ordered among themselves: the last one counts
        if self._atomics is None:
            return None
        wrong = self._atomics.unordered(units, program, self._order)
        if not wrong.any():
            return None
        unit = units[wrong][0]
        other = int(self._atomics.programs[unit])
        reads = kind == "load and atomic"
        return self._between(unit, program if reads else other, other if reads else program, kind)

    def _between(
        self,
        unit: int | np.int64,
        other: int | np.int32,
        writer: int | np.int32,
        kind: ConflictKind,
        where: str = "",
    ) -> Conflict:
        programs = self._order.programs
        address = self._start + int(unit) * self._unit
        return Conflict(address, programs[int(other)], programs[int(writer)], kind, where)
