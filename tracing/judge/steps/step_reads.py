"""Determine in which arguments the launches of a step found its input values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tracing.analyze.judge.launched_steps import LaunchedStep
from tracing.judge.contents import Content
from tracing.judge.steps.graph_memory import GraphMemory, product
from tracing.model import TensorMeta


class _Unnamed(NamedTuple):
    """What a launch reads under the new name of a buffer."""

    content: Content
    storage: int | None
    launch: int


class StepReads:
    """The contents that launches read, by the name of the expected buffer."""

    def __init__(self, memory: GraphMemory) -> None:
        self._memory, self._contents, self._held = memory, memory.contents, memory.held

    def of(self, made: LaunchedStep) -> dict[str, Content]:
        """The contents that the launches of a step read."""
        before: dict[str, Content] = {}
        unnamed: list[_Unnamed] = []
        names = {self._memory.schedule.location(name): name for name in made.step.reads}
        for call in made.calls:
            for name, position, argument in call.arguments():
                if call.launch is None:
                    continue
                content = self._contents.argument(call.launch, position, argument, "before")
                if not content or not argument.reads:
                    continue
                if name in names:
                    before.setdefault(names[name], content)
                elif name in made.step.buffers:  # a buffer that it reuses, under its new name
                    unnamed.append(_Unnamed(content, argument.storage, call.launch.index))
        return before | self._reused(unnamed, [name for name in made.step.reads if name not in before])

    def _reused(self, unnamed: Sequence[_Unnamed], names: Sequence[str]) -> dict[str, Content]:
        # of the names without an argument, the one whose buffer the launch overwrites
        left = [name for name in names if name in self._held]
        matched: dict[str, Content] = {}
        unclear = []
        for one in unnamed:
            equal = [
                name
                for name in left
                if (known := self._held[name].content) and self._contents.same(known, self._as(name, one))
            ]
            if equal:
                matched[equal[0]] = self._as(equal[0], one)
                left.remove(equal[0])
            else:
                unclear.append(one)
        fitting = [name for name in left if self._fits(name, unclear)]
        if len(unclear) == 1 and len(fitting) == 1:
            matched[fitting[0]] = self._as(fitting[0], unclear[0])
        return matched

    def _as(self, name: str, one: _Unnamed) -> Content:
        # its memory as the buffer of this name, which may have another layout, as one that is transposed
        layout = self._layout(name, one)
        return one.content if layout is None else self._contents.renamed(one.content, layout)

    def _layout(self, name: str, one: _Unnamed) -> TensorMeta | None:
        held = self._held[name]
        layout = held.content.meta if held.content is not None else None
        if layout is None and held.by is not None:
            written = (arg.tensor for arg in held.by.args if arg.storage == held.storage)
            layout = next(written, None)
        elif layout is None and one.storage is not None:
            layout = self._memory.operators.layout(one.storage, one.launch)
        return layout

    def _fits(self, name: str, unnamed: Sequence[_Unnamed]) -> bool:
        held = self._held[name]
        if len(unnamed) != 1 or (held.step is None and held.content is None):
            return False
        plain = self._contents.tensor(unnamed[0].content).is_contiguous()
        if not plain and self._layout(name, unnamed[0]) is None:
            return False  # as of a run without operators: it may be transposed
        if held.content is not None:
            return self._contents.same(held.content, self._as(name, unnamed[0])) is False
        value = held.value and self._memory.program.nodes[held.value.node].value
        meta = self._as(name, unnamed[0]).meta
        if not isinstance(value, dict) or meta is None or value.get("dtype") != meta.dtype:
            return False
        shape = value.get("shape", [])
        sizes = [one for one in shape if isinstance(one, int)]
        return len(sizes) < len(shape) or product(sizes) == product(meta.shape)
