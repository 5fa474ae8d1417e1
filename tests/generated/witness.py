"""Executes a random program without Triton and recorder: the elements that launches read, and their writers.

Kernels are executed by torch; operators and the host's writes are the program's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from generated.programs import Position, case


class Writer(IntEnum):
    """The last writer of an element."""

    NOBODY = 0
    START = 1  # the program's first operators
    LAUNCH = 2
    OPERATOR = 3
    HOST = 4  # over elements that an operator or nothing wrote
    HOST_AFTER_LAUNCH = 5
    PLANTED = 6  # the planted operator


@dataclass(frozen=True, slots=True)
class Read:
    """Elements that a launch reads, or that are left at the end."""

    values: np.ndarray[Any, Any]
    writers: np.ndarray[Any, Any]  # of each element


@dataclass(frozen=True, slots=True)
class Event:
    """A launch."""

    position: Position
    turn: int  # earlier executions of this step
    kernel: str
    reads: tuple[Read, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """The launches of an execution, and its results."""

    events: tuple[Event, ...]
    results: tuple[Read, ...]
    before: dict[Position, int]  # launches before a step was first executed

    def first(self, position: Position) -> int:
        """The number of the first launch of a step."""
        return next(number for number, event in enumerate(self.events) if event.position == position)


@dataclass(frozen=True, slots=True)
class Shown:
    """The first difference of two programs in the elements that a launch reads, or in the results."""

    launch: int | None  # of the second program; None: only in the results
    kernel: str
    a: frozenset[Writer]  # of the elements that differ, in the first program
    b: frozenset[Writer]  # likewise in the second
    around: frozenset[Writer]  # of all elements that are read there, in both


def traced(program: Any, planted: Position = ()) -> Trace:
    """Executes a program.

    planted -- the position of the planted operator
    """
    torch.manual_seed(0)
    witness = Witness(program, case.workload(program, "cpu").args[0], planted)
    witness.run(program.steps)
    results = tuple(witness.read(buffer) for buffer in witness.buffers)
    return Trace(tuple(witness.events), results, witness.before)


def shown(a: Trace, b: Trace, moved: dict[Position, Position]) -> Shown | None:
    """The first difference in elements that launches read, or in the results; None if there is none.

    moved -- position of a step in the second program -> its position in the first, if they differ
    """
    known = {(event.position, event.turn): event.reads for event in a.events}
    for number, event in enumerate(b.events):
        reads = known.get((moved.get(event.position, event.position), event.turn), ())
        if difference := _difference(list(zip(reads, event.reads, strict=bool(reads)))):
            return Shown(number, event.kernel, *difference)
    if difference := _difference(list(zip(a.results, b.results, strict=True))):
        return Shown(None, "", *difference)
    return None


def _difference(pairs: Sequence[tuple[Read, Read]]) -> tuple[frozenset[Writer], ...] | None:
    in_a: set[Writer] = set()
    in_b: set[Writer] = set()
    for a, b in pairs:
        differ = a.values.view(np.int32) != b.values.view(np.int32)
        in_a |= {Writer(writer) for writer in a.writers[differ]}
        in_b |= {Writer(writer) for writer in b.writers[differ]}
    around = {Writer(writer) for pair in pairs for read in pair for writer in read.writers}
    return (frozenset(in_a), frozenset(in_b), frozenset(around)) if in_a else None


class Witness(case.Machine):
    """Executes a program and keeps the elements that each launch reads."""

    def __init__(self, program: Any, values: torch.Tensor, planted: Position) -> None:
        super().__init__(program, values)
        self.planted = planted
        self.events: list[Event] = []
        self.before: dict[Position, int] = {}
        self._turns: dict[Position, int] = {}
        self._position: Position = ()
        self._writers: dict[int, np.ndarray[Any, Any]] = {}
        self._kept: list[torch.Tensor] = []  # so that no address is used twice
        for buffer in self.buffers:
            self._elements(buffer)[...] = Writer.START

    def run(self, steps: Any) -> None:
        outer = self._position
        for number, step in enumerate(steps):
            self._position = (*outer, number)
            self.before.setdefault(self._position, len(self.events))
            super().run((step,))
        self._position = outer

    def launch(self, step: Any) -> None:
        tensors = [self.at(region) for region in step.regions]
        position, n = self._position, step.n
        inputs = [tensor[:n] for tensor in {"spill": [], "bump": tensors}.get(step.kernel, tensors[:-1])]
        turn = self._turns.get(position, 0)
        self._turns[position] = turn + 1
        self.events.append(Event(position, turn, step.kernel, tuple(self.read(one) for one in inputs)))
        target, values = _executed(step, inputs, tensors[-1], 1.25 if step.code else 0.25)
        target.copy_(values)
        self._elements(target)[...] = Writer.LAUNCH

    def operator(self, step: Any) -> None:
        super().operator(step)
        whole = self.buffers[step.target.buffer] if step.name == "sin" else self.at(step.target)
        written = whole.view(-1, 8)[:, 3] if step.name == "column" else whole
        planted = self._position == self.planted
        self._elements(written)[...] = Writer.PLANTED if planted else Writer.OPERATOR

    def host(self, step: Any) -> None:
        super().host(step)
        element = self._elements(self.at(step.target)[step.at])
        over = element in (Writer.LAUNCH, Writer.HOST_AFTER_LAUNCH)
        element[...] = Writer.HOST_AFTER_LAUNCH if over else Writer.HOST

    def fresh(self, step: Any) -> None:
        super().fresh(step)
        self._elements(self.buffers[step.buffer])[...] = Writer.NOBODY

    def thread(self, step: Any) -> None:
        self.run(step.steps)  # the program waits for it

    def loop(self, step: Any) -> None:
        position = self._position
        for _ in range(step.count):
            self.run(step.steps)
            self._position = position

    def read(self, tensor: torch.Tensor) -> Read:
        return Read(tensor.numpy().copy(), self._elements(tensor).copy())

    def _elements(self, tensor: torch.Tensor) -> np.ndarray[Any, Any]:
        """The writers of a tensor's elements, as a view that can be written."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._writers:
            self._kept.append(tensor)
            self._writers[storage.data_ptr()] = np.zeros(storage.nbytes() // 4, np.int8)
        flat = self._writers[storage.data_ptr()][tensor.storage_offset() :]
        return np.lib.stride_tricks.as_strided(flat, tensor.shape, tensor.stride())


def _executed(
    step: Any, inputs: Sequence[torch.Tensor], out: torch.Tensor, term: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The elements that a launch writes."""
    n = step.n
    if step.kernel == "spill":
        past = out.as_strided((n + 8,), (1,), out.storage_offset())
        return past, torch.arange(n + 8) * step.scalar + term
    if step.kernel == "total":
        return out[:1], inputs[0].sum()[None] * step.scalar + term
    if step.kernel == "bump":
        return out[:n], inputs[0] + step.scalar + term
    if step.kernel == "add":
        return out[:n], inputs[0] + inputs[1] * step.scalar + term
    values = inputs[0] * step.scalar + term
    return out[:n], torch.roll(values, n // 2) if step.kernel == "place" else values


def iterations(position: Position, program: Any) -> Iterator[Any]:
    """The loops that contain a step."""
    steps = program.steps
    for number in position:
        if isinstance(steps[number], case.Loop):
            yield steps[number]
        steps = getattr(steps[number], "steps", ())
