"""Judges the outputs of the launches of one step by the values of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tracing.analyze.judge.findings import LaunchVerdict, WrongElements
from tracing.judge.contents import Content
from tracing.judge.fx.float64 import (
    OTHER_ON_GPU,
    OtherDtype,
    float64_verdicts,
    has_one_value,
    resembles,
    right_on_cpu,
    undecided,
    wrong_elements,
)
from tracing.judge.fx.fx_values import FxPlan
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.fx.operators import resolved
from tracing.judge.steps.graph_memory import BufferContent, FxSources, GraphMemory
from tracing.judge.steps.values import given_to_operators
from tracing.model import KernelLaunch

PARTIAL = "it leaves partial results, for which no node of the graph stands"


@dataclass(slots=True)
class StepVerdict:
    """The verdict on the launches of a step."""

    verdict: LaunchVerdict
    why: str = ""
    nodes: list[str] = field(default_factory=list)
    wrong: list[WrongElements] = field(default_factory=list)
    rounded: list[str] = field(default_factory=list)  # nodes of which ATen gives another value
    unjudged: list[str] = field(default_factory=list)  # arguments without a reference, unlike others


class StepJudge:
    """Judges the steps of one call of a graph."""

    def __init__(self, memory: GraphMemory) -> None:
        self._memory, self._program = memory, memory.program

    def verdict(
        self,
        targets: Mapping[str, BufferContent],
        written: Mapping[str, tuple[str, Content]],
        launches: Sequence[KernelLaunch],
    ) -> StepVerdict:
        """Judge a step.

        targets  -- its outputs, by name of the schedule
        written  -- for each of them, the argument, and its content after the launch
        launches -- that it made, after those whose partial results it reads
        """
        if not written:
            wrote = any(argument.writes for one in launches for argument in one.args)
            return StepVerdict("no reference", "what it wrote was not kept" if wrote else "it wrote nothing")
        named = {name: held.value for name, held in targets.items() if name in written and held.value}
        if not named:
            return self._copies(targets, written)
        verdict = StepVerdict("no reference")
        drawn: FxSources = {}  # other results of this launch that depend on its random numbers
        by_order = sorted(named.items(), key=lambda one: self._program.order[one[1].node])
        right = False
        for name, value in by_order:
            sources = targets[name].sources
            try:
                plan, sources = self._memory.plan(value, sources | drawn)
                if self._memory.draws_unknown(plan, launches):
                    drawn[value] = written[name][1]
                    raise NoReference("random numbers that it draws")
                wrong, rounded = self.wrong(plan, sources, name, *written[name])
                verdict.nodes += [one for one in plan.nodes if one not in verdict.nodes]
            except NoReference as reason:
                verdict.why = verdict.why or f"it depends on {reason}"
                verdict.unjudged.append(written[name][0])
                continue
            right = True
            verdict.wrong += wrong
            verdict.rounded += [value.node] if rounded else []
        self._given(verdict, targets, written)
        if verdict.wrong:
            verdict.verdict = "off"
        elif right:
            verdict.verdict = "right"
        else:
            verdict.unjudged = []
        return verdict

    def _given(
        self,
        verdict: StepVerdict,
        targets: Mapping[str, BufferContent],
        written: Mapping[str, tuple[str, Content]],
    ) -> None:
        # what only an operator without a reference reads is judged by no later step
        unknown = {name for name in written if targets[name].value is None}
        readers = given_to_operators(self._memory.schedule, self._program) if unknown else {}
        for name in written:
            if name not in unknown or name not in readers:
                continue
            plan = next(self._copied(name, targets[name].sources, *written[name]), None)
            if plan is not None:
                targets[name].value = plan.targets[0]
                continue
            try:
                resolved(readers[name])
            except NoReference as reason:
                verdict.why = verdict.why or f"it is only read by {reason}"
                verdict.unjudged.append(written[name][0])

    def _copies(
        self, targets: Mapping[str, BufferContent], written: Mapping[str, tuple[str, Content]]
    ) -> StepVerdict:
        # a buffer without a node may still hold one's value, in another layout: if it does, it is right
        nodes: list[str] = []
        for name, (argument, content) in written.items():
            plan = next(self._copied(name, targets[name].sources, argument, content), None)
            if plan is None:
                return StepVerdict("no reference", PARTIAL)
            nodes += plan.nodes
            targets[name].value = plan.targets[0]
        return StepVerdict("right", nodes=nodes)

    def _copied(self, name: str, sources: FxSources, argument: str, content: Content) -> Iterator[FxPlan]:
        buffer = self._memory.schedule.buffers.get(name)
        shape = content.meta.shape if content.meta is not None else ()
        origins = sorted(buffer.origins if buffer else (), key=self._program.order.__getitem__)
        for origin in reversed(origins):
            value = self._program.nodes[origin].value
            if not isinstance(value, dict) or not _may_be(value.get("shape", ()), shape):
                continue
            try:
                plan, given = self._memory.plan(self._program.value(origin), sources)
                loaded, tensor = self._memory.loaded(given), self._memory.contents.tensor(content)
                if plan.draws or not resembles(self._program, plan, loaded, tensor):
                    continue
                if self.wrong(plan, given, name, argument, content)[0]:
                    continue
                if has_one_value(self._program, plan, loaded):
                    yield plan
            except NoReference:
                continue

    def wrong(
        self, plan: FxPlan, sources: FxSources, buffer: str, name: str, content: Content
    ) -> tuple[list[WrongElements], bool]:
        """The wrong elements of a tensor, and whether it is right although ATen's own value is not.

        plan    -- computes the value that the tensor should hold from `sources`
        buffer  -- name of the tensor in the generated code
        name    -- of the argument that has it

        Raises NoReference if it cannot be judged.
        """
        tensor = self._memory.contents.tensor(content)
        value = plan.targets[0]
        try:
            verdict = float64_verdicts(self._program, plan, self._memory.loaded(sources), {value: tensor})[
                value
            ]
        except OtherDtype as other:
            return [other.elements(name, buffer, tensor)], False
        if verdict.verdict == "no reference":
            raise NoReference(", ".join(verdict.missing))
        if reason := undecided(verdict):
            raise NoReference(reason)
        if verdict.verdict != "compiled is off":
            return [], verdict.eager.off and not verdict.compiled.off
        if plan.uninitialised:
            raise NoReference("unwritten memory")
        if right_on_cpu(self._program, plan, self._memory.loaded(sources), tensor):
            raise NoReference(OTHER_ON_GPU)
        return [wrong_elements(name, buffer, value, verdict, tensor.numel())], False


def _may_be(symbolic: Sequence[int | str], shape: Sequence[int]) -> bool:
    # a size that is a symbol may be any number
    sizes = zip(symbolic, shape, strict=False)
    return len(symbolic) == len(shape) and all(one == size for one, size in sizes if isinstance(one, int))
