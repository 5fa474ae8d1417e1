"""Finds launches that were passed another buffer than the one that an operator of a library made for them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from tracing.analyze.judge.launched_steps import LaunchedStep
from tracing.judge.contents import Content
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.steps.graph_memory import BufferContent, GraphMemory
from tracing.judge.steps.library_storages import library_storages
from tracing.judge.steps.step_inputs import library_operators
from tracing.judge.steps.step_verdict import StepJudge
from tracing.store.graph_file import ScheduleStep


class ExchangedBuffers:
    """The buffers that launches of one call read in place of others."""

    def __init__(self, memory: GraphMemory, steps: Sequence[LaunchedStep]) -> None:
        self._memory, self._steps = memory, steps

    def instead(self, name: str, held: BufferContent, made: LaunchedStep) -> str:
        """The buffer that a step was passed for the one that an operator made; "": none that is known."""
        own, passed = self._storages.get(name), self.passed(held.content, made)
        others = [one for one, storage in self._storages.items() if storage in passed]
        if own is None or own in passed or len(others) != 1:
            return ""
        return others[0] if self._holds(held.content, self._memory.held[others[0]]) else ""

    def passed(self, content: Content | None, made: LaunchedStep) -> set[int | None]:
        """The storages of the arguments in which a step read a content."""
        return {
            argument.storage
            for call in made.calls
            for _, position, argument in call.arguments()
            if call.launch is not None and content is not None
            if (read := self._memory.contents.argument(call.launch, position, argument, "before"))
            if read.blob == content.blob
        }

    @functools.cached_property
    def _storages(self) -> Mapping[str, int]:
        return library_storages(self._steps, self._memory.operators, self._called)

    def _called(self, step: ScheduleStep) -> str:
        return next(iter(library_operators(self._memory, step)[-1:]), "").partition(".")[0]

    def _holds(self, content: Content | None, other: BufferContent) -> bool:
        # whether a content is what another buffer should hold
        if content is None or other.value is None:
            return False
        try:
            plan, sources = self._memory.plan(other.value, other.sources)
            return not StepJudge(self._memory).wrong(plan, sources, "", "", content)[0]
        except NoReference:
            return False
