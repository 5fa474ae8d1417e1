"""Finds out why the result of an operator that generated code calls, as `aten::mm`, is off.

Generated code may hand it another buffer, or one that was overwritten. Then the operator itself is right: of
the inputs that it should have it computes the right result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tracing.judge.contents import Content
from tracing.judge.fx.float64 import executed, right_by
from tracing.judge.fx.fx_values import FxPlan, FxValue
from tracing.judge.fx.no_reference import FAILURES, NoReference
from tracing.judge.steps.graph_memory import FxSources, GraphMemory
from tracing.judge.steps.step_verdict import StepJudge

_TRIED = 16  # buffers in place of one


@dataclass(frozen=True, slots=True)
class CalledOperator:
    """An operator whose result is off."""

    memory: GraphMemory
    plan: FxPlan  # computes its result
    sources: FxSources  # what it should have read
    content: Content  # its result

    def repeats_right(self) -> bool:
        """True if it computes the right result of what it should have read, executed once more."""
        program, given = self.memory.program, self.memory.loaded(self.sources)
        try:
            result = executed(program, self.plan, given)[self.plan.targets[0]]
        except (NoReference, KeyError):
            return False
        return right_by(program, self.plan, given, result)

    def misread(self) -> tuple[str, str] | None:
        """The name of what it should have read, and the buffer that it read, of which the result is right."""
        for name, value in self._read():
            for other, content in islice(self._others(value), _TRIED):
                try:
                    sources = {**self.sources, value: content}
                    if not StepJudge(self.memory).wrong(self.plan, sources, name, name, self.content)[0]:
                        return name, other
                except (NoReference, *FAILURES):
                    continue
        return None

    def _read(self) -> Iterator[tuple[str, FxValue]]:
        for name, held in self.memory.held.items():
            if held.value is not None and isinstance(self.sources.get(held.value), Content):
                yield name, held.value

    def _others(self, value: FxValue) -> Iterator[tuple[str, Content]]:
        # buffers of the same shape with other contents
        contents, own = self.memory.contents, self.sources[value]
        assert isinstance(own, Content)
        for name, held in self.memory.held.items():
            content = held.content
            if content is None or content == self.content:
                continue
            if contents.tensor(content).shape != contents.tensor(own).shape:
                continue
            if contents.same(content, own) is False:
                yield self.memory.schedule.location(name), content
