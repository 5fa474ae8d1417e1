"""The contents of a schedule's buffers during one call of its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch

from tracing.judge.contents import Content, Contents
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.fx_values import FxPlan, FxValue
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.fx.random_numbers import draws_as_known
from tracing.judge.steps.operator_writes import OperatorWrites
from tracing.model import GraphCall, KernelLaunch
from tracing.store.graph_file import Schedule, ScheduleStep
from tracing.upstream.torch.fused_attention import GeneratorState

NoTensor: TypeAlias = int | float | GeneratorState
FxSources: TypeAlias = dict[FxValue, Content | NoTensor]


@dataclass(slots=True)
class BufferContent:
    """The content of one name of the schedule in one call."""

    value: FxValue | None = None  # of the graph; None: no single one
    content: Content | None = None  # None: its content was not kept
    sources: FxSources = field(default_factory=dict)  # from which it was made
    launches: tuple[int, ...] = ()  # launches that write it and are not judged yet
    operators: tuple[str, ...] = ()  # of libraries that it was made by, and that are not judged yet
    step: ScheduleStep | None = None  # that made it; None: an input
    by: KernelLaunch | None = None
    storage: int | None = None  # that `by` wrote it to
    wrong: str = ""  # "launch 3 k is off": on which it depends
    unknown: str = ""  # why it is not known what reads it, or what it was made from: "k was not launched"
    unseen: str = ""  # "no launch was seen that computes sin", from which it was made


@dataclass(slots=True)
class GraphMemory:
    """The contents of one call."""

    program: FxProgram  # the graph as it was lowered
    schedule: Schedule
    contents: Contents
    held: dict[str, BufferContent]  # by name
    operators: OperatorWrites
    states: Mapping[FxValue, Content] = field(default_factory=dict)  # from which attention on a GPU draws

    def shaped(self, held: BufferContent, content: Content) -> Content | None:
        """A content as the graph's value, if a buffer is read with another shape; None: that cannot be."""
        value = held.value and self.program.nodes[held.value.node].value
        shape = value.get("shape") if isinstance(value, dict) else None
        meta = content.meta
        if shape is None or meta is None or [*meta.shape] == shape:
            return content
        if any(not isinstance(one, int) for one in shape):
            return content
        plain = self.contents.tensor(content)
        if product(shape) != plain.numel() or not plain.is_contiguous():
            return None
        return self.contents.reshaped(content, tuple(shape))

    def numbers(self) -> FxSources:
        """Inputs of the graph that are no tensors, as sizes."""
        return {
            value: content
            for one in self.held.values()
            for value, content in one.sources.items()
            if one.step is None and not isinstance(content, Content)
        }

    def plan(self, value: FxValue, sources: FxSources) -> tuple[FxPlan, FxSources]:
        """The plan that computes a value, and its inputs; raises NoReference if there is none."""
        sources = {**self.states, **sources}
        try:
            return self.program.plan([value], sources), sources
        except NoReference:  # a launch that needs only the shape of an input does not read it
            inputs = [self.held[name] for name in self.schedule.inputs if name in self.held]
            known = {one.value: one.content for one in inputs if one.value and one.content}
            more: FxSources = {**known, **sources}
            return self.program.plan([value], more), more

    def holder(self, content: Content) -> str:
        """The buffer that has a content; "": none that is known."""
        same = (
            name
            for name, held in self.held.items()
            if held.content is not None and self.contents.same(held.content, content)
        )
        return self.schedule.location(next(same, ""))

    def draws_unknown(self, plan: FxPlan, launches: Sequence[KernelLaunch]) -> bool:
        """True if a plan draws random numbers that are not those which some launches draw."""
        return plan.draws and not (plan.generated and draws_as_known(self.contents.run, launches))

    def loaded(self, sources: FxSources) -> dict[FxValue, object]:
        """Values of the graph as tensors and numbers."""
        tensor = self.contents.tensor
        return {v: tensor(one) if isinstance(one, Content) else one for v, one in sources.items()}


def product(sizes: Sequence[int]) -> int:
    """The number of elements of a shape."""
    return int(torch.Size(sizes).numel())


def inputs_without_tensors(call: GraphCall) -> dict[int, NoTensor]:
    """The inputs of a call that are numbers, or generators of a GPU, by position."""
    states = {i: GeneratorState(*one) for i, one in call.generators.items()}
    return {**{i: one for i, one in call.numbers.items() if isinstance(one, int | float)}, **states}


def generator_states(call: int, program: FxProgram, contents: Contents) -> dict[FxValue, Content]:
    """The states of a GPU's generator from which attention draws, if a call saves them for its backward.

    program -- the graph of the call, as Inductor received it or as it was lowered
    """
    wanted = {name for names in program.states.values() for name in names}
    states: dict[FxValue, Content] = {}
    for position, output in enumerate(program.outputs):
        content = contents.of_graph(call, position, "output")
        if content is not None and isinstance(output, Mapping) and output.get("node") in wanted:
            states[FxValue(output["node"], 0)] = content
    return states
