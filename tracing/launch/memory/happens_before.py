"""Which accesses of earlier programs the atomics of a launch order before those of the current program.

An atomic with release semantics passes on what its program did and knew before it; one with acquire
semantics at the same address receives it. Time is counted in atomics: an access at time 3 comes before
atomic 3.

Source: vector clocks, as in FastTrack (Flanagan and Freund, PLDI 2009); memory order as in PTX and C++.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tracing.interpreter.gates import Addresses, Mask, MemoryOrder

Program: TypeAlias = tuple[int, int, int]
Integers: TypeAlias = npt.NDArray[np.int32]
_Clock: TypeAlias = Integers  # [programs] the last atomic of each that is known; -1: none

PROGRAMS = 4096  # of a launch with atomics; of more the order is not followed
_WAITING = 1 << 20  # addresses of atomics that wait to be evaluated
_NOTHING: _Clock = np.zeros(0, np.int32)


class HappensBefore:
    """The programs of a launch in the order of execution, and the order that its atomics guarantee.

    Memory: four bytes for each pair of a program and an atomic whose value is still in memory, once `ordered`
    was called; 64 MB if each of 4096 programs makes one.
    """

    def __init__(self) -> None:
        self.time = 0  # atomics so far
        self.unknown = False  # `ordered` was asked, and there were too many programs
        self.programs: list[Program] = []  # by number
        self._numbers: dict[Program, int] = {}
        self._waiting: list[tuple[int, int, list[int], MemoryOrder]] = []
        self._size = 0  # addresses that wait
        self._clocks: dict[int, _Clock] = {}  # by address
        self._known: tuple[int, _Clock] = -1, _NOTHING  # of a program

    def number(self, program: Program) -> int:
        """The number of a program that accesses memory now."""
        number = self._numbers.setdefault(program, len(self._numbers))
        if number == len(self.programs):
            self.programs.append(program)
        return number

    def synchronise(self, program: int, addresses: Addresses, order: MemoryOrder) -> None:
        """Note an atomic of the current program."""
        self.time += 1
        if len(self.programs) > PROGRAMS:
            self._waiting, self._size, self._clocks = [], 0, {}
            return
        self._waiting.append((program, self.time - 1, addresses.tolist(), order))
        self._size += addresses.size
        if self._size > _WAITING:
            self._evaluate()

    def ordered(self, program: int, others: Integers, times: Integers) -> Mask:
        """[accesses] True for each that comes before what the current program does now.

        others -- [accesses] the program of each
        times  -- [accesses]

        If there are too many programs, all are, and `unknown` is set.
        """
        if self.time and len(self.programs) > PROGRAMS:
            self.unknown = True
            return np.ones(others.shape, bool)
        self._evaluate()
        of, known = self._known
        before: Mask = others == program
        if of == program:
            inside = others < known.size
            before[inside] |= known[others[inside]] >= times[inside]
        return before

    def _evaluate(self) -> None:
        for program, time, addresses, order in self._waiting:
            known = self._known[1] if self._known[0] == program else _NOTHING
            if order in ("acquire", "acq_rel"):
                clocks = {id(one): one for one in map(self._clocks.get, addresses) if one is not None}
                for clock in clocks.values():
                    known = _joined(known, clock)
            self._known = program, known
            if order in ("release", "acq_rel"):
                passed = np.full(max(known.size, program + 1), -1, np.int32)
                passed[: known.size] = known
                passed[program] = time
                for address in addresses:
                    self._clocks[address] = _joined(self._clocks.get(address, _NOTHING), passed)
        self._waiting, self._size = [], 0


def _joined(a: _Clock, b: _Clock) -> _Clock:
    # one of the two where it contains the other, so that equal clocks are one object
    short, long = (a, b) if a.size <= b.size else (b, a)
    if (short <= long[: short.size]).all():
        return long
    joined: _Clock = long.copy()
    joined[: short.size] = np.maximum(short, long[: short.size])
    return joined
