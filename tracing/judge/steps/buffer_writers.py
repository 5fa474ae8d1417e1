"""Finds what wrote to a buffer of a graph during one call, after the step that made its content."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tracing.analyze.judge.launched_steps import LaunchedStep
from tracing.judge.fx.operators import is_custom
from tracing.judge.steps.graph_memory import BufferContent, GraphMemory
from tracing.model import KernelLaunch
from tracing.store.graph_file import ScheduleStep

BufferWriter: TypeAlias = tuple[KernelLaunch | None, str]  # or the name of an operator; None, "": none


@dataclass(slots=True)
class BufferWriters:
    """The steps of a call so far, and their launches."""

    memory: GraphMemory
    launches: list[KernelLaunch] = field(default_factory=list)
    _steps: list[ScheduleStep] = field(default_factory=list)
    _counts: list[int] = field(default_factory=list)  # of launches before each step

    def add(self, made: LaunchedStep) -> None:
        """The next step of the call."""
        self._counts.append(len(self.launches))
        self.launches += made.launches
        self._steps.append(made.step)

    def between(self, held: BufferContent, made: LaunchedStep, name: str) -> BufferWriter:
        """What wrote to the memory that a step reads as buffer `name`, since that was made."""
        reader = made.launches[0]
        storages = {held.storage} if held.storage is not None else self._passed(made, name)
        later = [one for one in self._since(held) if one.index < reader.index]
        if (by := _last_writer(later, storages)) is not None:
            return by, ""
        # an operator before the next launch may have made the content, or, of an input, be the program's
        since = (held.by or (later[0] if later else reader)).index
        return None, self.memory.operators.first(storages, (since, reader.index))

    def later(self, held: BufferContent) -> BufferWriter:
        """What wrote to a buffer's storage after the launch that made it."""
        made = held.by
        if made is None or held.storage is None:
            return None, ""
        if (by := _last_writer(self._since(held), {held.storage})) is not None:
            return by, ""
        return None, self.memory.operators.first({held.storage}, (made.index, self.launches[-1].index + 1))

    def before(self, held: BufferContent, step: ScheduleStep | None) -> KernelLaunch | None:
        """The last launch that writes to a buffer's storage after the one that made it, and before a step."""
        if held.by is None or step not in self._steps:
            return None
        before = self.launches[: self._counts[self._steps.index(step)]]
        return _last_writer([one for one in before if one.index > held.by.index], {held.storage})

    def undeclared(self, name: str, held: BufferContent) -> tuple[str, ...]:
        """Operators of the program that read a buffer since it was made: one may write to it, undeclared."""
        location, program = self.memory.schedule.location, self.memory.program
        start = self._steps.index(held.step) + 1 if held.step in self._steps else 0
        read = [
            node
            for step in self._steps[start:]
            if step.kind == "library" and location(name) in map(location, step.reads)
            for node in map(program.nodes.__getitem__, step.nodes)
        ]
        return tuple(dict.fromkeys(one.target for one in read if is_custom(one) and not one.written))

    def _since(self, held: BufferContent) -> Sequence[KernelLaunch]:
        # the launches after the launch or operator that made a content
        if held.by is not None:
            return [one for one in self.launches if one.index > held.by.index]
        return self.launches[self._counts[self._steps.index(held.step)] if held.step in self._steps else 0 :]

    def _passed(self, made: LaunchedStep, name: str) -> set[int | None]:
        # the storage of the argument that has a content; all, if the launch overwrites it under a new name
        location = self.memory.schedule.location(name)
        arguments = [one for call in made.calls for one in call.arguments()]
        passed = {argument.storage for one, _, argument in arguments if one == location}
        return passed or {argument.storage for _, _, argument in arguments if argument.reads}


def _last_writer(launches: Sequence[KernelLaunch], storages: Collection[int | None]) -> KernelLaunch | None:
    writers = [one for one in launches if {arg.storage for arg in one.args if arg.writes} & {*storages}]
    return writers[-1] if writers else None
