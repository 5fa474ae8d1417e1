"""Finds launches that overwrite an input of their graph although the graph does not change it.

Nothing in the call may read the input afterwards, so that each launch is right, and the program is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from tracing.analyze.judge.launched_steps import LaunchedStep
from tracing.judge.steps.operator_writes import OperatorWrites
from tracing.model import KernelLaunch
from tracing.store.graph_file import Schedule


@dataclass(slots=True)
class OverwrittenInputs:
    """Looks at the launches of one call of a graph, in their order.

    An input is known by the storage in which a launch read it under its name. Memory that was freed and
    allocated once more is another buffer, so a run that lacks allocations shows nothing.
    """

    schedule: Schedule
    operators: OperatorWrites
    changed: Collection[str] = ()  # inputs that the graph changes, or whose memory it may use
    _read: dict[int, tuple[str, int]] = field(default_factory=dict)  # by storage: an input, its first reader
    _own: set[int] = field(default_factory=set)  # storages that launches write as an input

    def of(self, made: LaunchedStep) -> Iterator[tuple[KernelLaunch, str]]:
        """The launches of a step that overwrite an input, with its name."""
        arguments = [
            (call.launch, self.schedule.location(name), argument.writes, argument.storage)
            for call in made.calls
            for name, _, argument in call.arguments()
            if argument.declared != "unknown"
        ]
        for launch, name, writes, storage in arguments:
            if launch is not None and storage is not None and name in self.schedule.inputs:
                if writes or name in self.changed:
                    self._own.add(storage)
                self._read.setdefault(storage, (name, launch.index))
        for launch, name, writes, storage in arguments:
            if launch is None or not writes or name in self.schedule.inputs or storage in self._own:
                continue
            if storage is None or (known := self._read.get(storage)) is None:
                continue
            if not self.operators.allocated(storage, (known[1], launch.index)):
                yield launch, known[0]
