"""Judges what one call of a compiled graph gave by the graph as Inductor got it.

If a result is off though every launch is right, Inductor's graph passes changed what the graph computes, or a
launch overwrote the result. The graph that the
passes left decides which of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tracing.analyze.judge.judgement import Finding, OutputOff, Overwritten, PassesOff, WrongElements
from tracing.judge.contents import Content, Contents
from tracing.judge.float64 import DOES_NOT_RUN, exact_values, judged, wrong_elements
from tracing.judge.fx_program import FxProgram, FxValue
from tracing.judge.operators import NoReference
from tracing.judge.step_referee import StepReferee
from tracing.numerics.verdict import Judged
from tracing.store.graph_file import Schedule


@dataclass(frozen=True, slots=True)
class _Result:
    """A result of a call: an output, or an input that the graph overwrites."""

    name: str  # "output 0", "input 1 afterwards"
    buffer: str
    value: FxValue  # of the graph as Inductor got it
    lowered: FxValue | None  # of the graph as it was lowered
    content: Content


class GraphReferee:
    """Judges the results of one call of a graph."""

    def __init__(
        self,
        call: int,
        program: FxProgram,
        steps: StepReferee,
        contents: Contents,
        numbers: Mapping[int, Any],
    ) -> None:
        """program -- the graph as Inductor got it; numbers -- inputs of the call that are no tensors"""
        self._call, self._program, self._steps, self._contents = call, program, steps, contents
        self._numbers = numbers
        self.not_covered: list[str] = []
        self._refusal = ""  # why a value of a graph could not be computed

    def findings(self) -> list[Finding]:
        """What is off in results, the first one only; what no launch that is off explains."""
        given = self._given(self._program)
        results = self._results(self._steps.schedule)
        together = self._together(results, given)
        for result in results:
            wrong = self._wrong(result, given, together.get(result.value))
            if wrong is not None:
                return [self._explained(result, wrong, given)]
        return []

    def _together(self, results: list[_Result], given: dict[FxValue, Any]) -> dict[FxValue, Judged]:
        # one execution of the graph judges all results that have a reference
        actual: dict[FxValue, torch.Tensor] = {}
        for result in results:
            try:
                plan = self._program.plan([result.value], given)
            except NoReference:
                continue
            if plan.nodes and not (plan.draws or plan.uninitialised):
                actual.setdefault(result.value, self._contents.tensor(result.content))
        try:
            return judged(self._program, self._program.plan([*actual], given), given, actual)
        except NoReference:
            return {}

    def _given(self, program: FxProgram) -> dict[FxValue, Any]:
        given: dict[FxValue, Any] = {}
        for position, name in enumerate(program.inputs):
            content = self._contents.of_graph(self._call, position, "input")
            if content is not None:
                given[FxValue(name, 0)] = self._contents.tensor(content)
            elif position in self._numbers:
                given[FxValue(name, 0)] = self._numbers[position]
        return given

    def _results(self, schedule: Schedule) -> list[_Result]:
        end = len(self._program.nodes)
        lowered_end = len(self._steps.program.nodes)
        outputs = zip(schedule.outputs, self._program.outputs, self._steps.program.outputs, strict=False)
        results = []
        for position, (buffer, own, lowered) in enumerate(outputs):
            content = self._contents.of_graph(self._call, position, "output")
            if content is not None and isinstance(own, Mapping) and isinstance(lowered, Mapping):
                value = self._program.value(own["node"], end)
                after = self._steps.program.value(lowered["node"], lowered_end)
                results.append(_Result(f"output {position}", buffer, value, after, content))
        for position, name in enumerate(self._program.inputs):
            content = self._contents.of_graph(self._call, position, "afterwards")
            if content is not None:
                value = self._program.value(name, end)
                nodes = self._steps.program.nodes
                left = self._steps.program.value(name, lowered_end) if name in nodes else None
                results.append(_Result(f"input {position} afterwards", name, value, left, content))
        return results

    def _wrong(
        self, result: _Result, given: dict[FxValue, Any], verdict: Judged | None
    ) -> WrongElements | None:
        try:
            plan = self._program.plan([result.value], given)
            if plan.draws or plan.uninitialised:
                raise NoReference("random numbers" if plan.draws else "memory that nobody wrote")
            if not plan.nodes:
                return None  # an input that is returned
            tensor = self._contents.tensor(result.content)
            if verdict is None:
                verdict = judged(self._program, plan, given, {result.value: tensor})[result.value]
            if verdict.verdict == "no reference":
                raise NoReference(", ".join(verdict.missing))
        except NoReference as reason:
            self.not_covered.append(f"{result.name} of graph {self._steps.graph}: it depends on {reason}")
            return None
        if verdict.verdict != "compiled is off":
            return None
        return wrong_elements(result.name, result.buffer, result.value, verdict, tensor.numel())

    # ---- why

    def _explained(self, result: _Result, wrong: WrongElements, given: dict[FxValue, Any]) -> Finding:
        graph, lines = self._steps.graph, self._lines(wrong.node)
        unjudged = [
            f"launch {one.launch} {one.kernel}"
            for one in self._steps.launches
            if one.verdict == "no reference"
        ]
        unexplained = OutputOff(graph, wrong, (*unjudged, *self._steps.unjudged), lines)
        if result.lowered is None:
            return unexplained
        right = self._exact(self._program, [result.value], given).get(result.value)
        program, node = self._steps.program, result.lowered.node
        after = self._given(program)
        root = program.root(node)
        states = [FxValue(node, writes) for writes in range(result.lowered.writes + 1)]
        left = self._exact(program, states, after)
        if right is None:
            return unexplained
        if result.lowered not in left:  # a graph that does not run, from one that does
            refused = self._refusal.startswith(DOES_NOT_RUN)
            return PassesOff(graph, wrong, "", lines) if refused else unexplained
        if _alike(left[result.lowered], right):
            return unexplained
        for state in states[:-1]:
            if state in left and _alike(left[state], right):
                writer = program.writers[root][state.writes]
                return self._overwritten(result, wrong, writer)
        return PassesOff(graph, wrong, self._first(given, after), lines)

    def _overwritten(self, result: _Result, wrong: WrongElements, writer: str) -> Overwritten:
        steps = self._steps
        names = [
            name
            for name, value in steps.values.items()
            if value == steps.program.after(writer, steps.program.root(writer))
        ]
        by = next((held.by for name in names if (held := steps.held.get(name)) and held.by), None)
        return Overwritten(
            steps.graph, result.name, result.buffer, wrong.node,
            by.index if by else None, by.kernel_name if by else writer, "Inductor's graph passes",
            wrong, self._lines(wrong.node),
        )  # fmt: skip

    def _first(self, given: dict[FxValue, Any], after: dict[FxValue, Any]) -> str:
        # the first node that both graphs have and whose value is another one
        program = self._steps.program
        names = [name for name in program.order if name in self._program.nodes and not program.is_view(name)]
        for name in names:
            if program.nodes[name].op != "call_function":
                continue
            own, lowered = self._program.value(name), program.value(name)
            before, now = (
                self._exact(graph, [value], start).get(value)
                for graph, value, start in ((self._program, own, given), (program, lowered, after))
            )
            if before is not None and now is not None and not _alike(now, before):
                return name
        return ""

    def _exact(
        self, program: FxProgram, values: list[FxValue], given: dict[FxValue, Any]
    ) -> dict[FxValue, torch.Tensor]:
        exact = {}
        for value in values:
            try:
                plan = program.plan([value], given)
                if not plan.draws:
                    exact[value] = exact_values(program, plan, given)[value].exact
            except NoReference as reason:
                self._refusal = str(reason)
            except KeyError:
                continue
        return exact

    def _lines(self, node: str) -> Any:
        known = self._program.nodes.get(node)
        line = self._program.graph.line_of(known) if known is not None else None
        return (line,) if line is not None else ()


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    # both computed in float64: what differs is not rounding
    return a.shape == b.shape and bool(torch.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True))
