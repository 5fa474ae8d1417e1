"""Judges the results of one call of a compiled graph by the graph as Inductor received it.

`graph_cause.py` finds the reason if a result is off although every launch is right.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import torch

from tracing.analyze.judge.findings import Finding, OutputOff, ResultFinding, WrongElements
from tracing.judge.contents import Contents
from tracing.judge.fx.float64 import OTHER_ON_GPU, float64_verdicts, right_on_cpu, undecided, wrong_elements
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.fx_values import FxValue
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.fx.operators import is_seed, references
from tracing.judge.graph_cause import GraphCause, GraphResult
from tracing.judge.steps.graph_memory import FxSources, NoTensor, generator_states
from tracing.judge.steps.judged_steps import JudgedSteps
from tracing.judge.traced.drawn_numbers import GraphDraws
from tracing.numerics.verdict import FEW, UNKNOWN_NOISE, Judged
from tracing.store.graph_file import Schedule


class GraphReferee:
    """Judges the results of one call of a graph."""

    def __init__(
        self,
        call: int,
        program: FxProgram,
        steps: JudgedSteps,
        contents: Contents,
        others: Mapping[int, NoTensor],
        saved: Collection[str],
    ) -> None:
        """Judge one call.

        program -- the graph as Inductor received it
        others  -- inputs of the call that are no tensors
        saved   -- nodes whose values the graph returns for its backward
        """
        self._call, self._program, self._steps, self._contents = call, program, steps, contents
        self._others, self._saved = others, saved
        self.not_covered: list[str] = []

    def findings(self, *, complete: bool) -> list[Finding]:
        """The first result that is off and that no wrong launch explains; it names the others.

        complete -- every launch of the call was recorded
        """
        given = self._given(self._program)
        results = self._results(self._steps.memory.schedule)
        together = self._together(results, given)
        off: list[tuple[GraphResult, WrongElements]] = []
        for result in results:
            wrong = self._wrong(result, given, together.get(result.value))
            off += [(result, wrong)] if wrong is not None else []
        after = self._given(self._steps.memory.program)
        cause = GraphCause(self._program, given, self._steps, after)
        for i, (result, wrong) in enumerate(off):
            finding = cause.of(result, wrong)
            if not (complete and self._is_noise(finding)):
                return [replace(finding, also=tuple(other.name for other, _ in off[i + 1 :]))]
            self._unjudged(result, "how the roundings of its launches add up, each of which is right")
        return []

    def draws(self) -> GraphDraws | None:
        """The random numbers that the call drew; None: none."""
        drawing = {one.name for one in GraphDraws.nodes(self._program)}
        if not drawing:
            return None
        lookups = (one for one in self._program.graph.nodes if one.target == "prims::inductor_lookup_seed")
        read = drawing | {seeds for one in lookups for seeds in references(one.args)}
        inputs = self._program.inputs
        sources: FxSources = {FxValue(inputs[position], 0): one for position, one in self._others.items()}
        for position, name in enumerate(inputs):
            if (content := self._contents.of_graph(self._call, position, "input")) is not None:
                sources[FxValue(name, 0)] = content
        for held in self._steps.memory.held.values():
            value, content = held.value, held.content
            if value is not None and content is not None and value.node in read and value.writes == 0:
                sources[value] = content
        sources |= generator_states(self._call, self._program, self._contents)
        return GraphDraws(self._program, sources, self._steps.draws_known)

    def _together(self, results: list[GraphResult], given: dict[FxValue, Any]) -> dict[FxValue, Judged]:
        # one execution of the graph judges all results that have a reference
        actual: dict[FxValue, torch.Tensor] = {}
        for result in results:
            try:
                plan = self._program.plan([result.value], given)
            except NoReference:
                continue
            if plan.nodes and not (self._steps.draws_unknown(plan) or plan.uninitialised):
                actual.setdefault(result.value, self._contents.tensor(result.content))
        try:
            return float64_verdicts(self._program, self._program.plan([*actual], given), given, actual)
        except NoReference:
            return {}

    def _given(self, program: FxProgram) -> dict[FxValue, Any]:
        given: dict[FxValue, Any] = {}
        for position, name in enumerate(program.inputs):
            content = self._contents.of_graph(self._call, position, "input")
            if content is not None:
                given[FxValue(name, 0)] = self._contents.tensor(content)
            elif position in self._others:
                given[FxValue(name, 0)] = self._others[position]
        states = generator_states(self._call, program, self._contents)
        return given | self._seeds(program) | {one: self._contents.tensor(at) for one, at in states.items()}

    def _seeds(self, program: FxProgram) -> dict[FxValue, Any]:
        # drawn by a node of the graph, and read by launches
        memory = self._steps.memory
        return {
            held.value: self._contents.tensor(held.content)
            for held in memory.held.values()
            if held.value and held.content and is_seed(memory.program.nodes[held.value.node])
            if held.value.node in program.nodes
        }

    def _results(self, schedule: Schedule) -> list[GraphResult]:
        end = len(self._program.nodes)
        lowered_graph = self._steps.memory.program
        lowered_end = len(lowered_graph.nodes)
        outputs = zip(schedule.outputs, self._program.outputs, lowered_graph.outputs, strict=False)
        results = []
        for position, (buffer, own, lowered) in enumerate(outputs):
            content = self._contents.of_graph(self._call, position, "output")
            if content is None or not isinstance(own, Mapping) or not isinstance(lowered, Mapping):
                continue
            if own["node"] not in self._program.undetermined:
                value = self._returned(own["node"])
                after = lowered_graph.value(lowered["node"], lowered_end)
                results.append(GraphResult(f"output {position}", buffer, value, after, content))
        for position, name in enumerate(self._program.inputs):
            content = self._contents.of_graph(self._call, position, "afterwards")
            if content is not None:
                value = self._program.value(name, end)
                left = lowered_graph.value(name, lowered_end) if name in lowered_graph.nodes else None
                results.append(GraphResult(f"input {position} afterwards", name, value, left, content))
        return results

    def _returned(self, node: str) -> FxValue:
        # an input is saved as it was: the graph is functional but for the copies to its inputs at its end
        program = self._program
        if node in self._saved and program.root(node) in program.inputs:
            return FxValue(program.tensor(node), 0)
        return program.value(node, len(program.nodes))

    def _wrong(
        self, result: GraphResult, given: dict[FxValue, Any], verdict: Judged | None
    ) -> WrongElements | None:
        try:
            plan = self._program.plan([result.value], given)
            if plan.uninitialised or self._steps.draws_unknown(plan):
                raise NoReference("unwritten memory" if plan.uninitialised else "random numbers")
            if not (plan.nodes or self._program.writers.get(self._program.root(result.value.node))):
                return None  # an input that is returned
            tensor = self._contents.tensor(result.content)
            if verdict is None:
                verdict = float64_verdicts(self._program, plan, given, {result.value: tensor})[result.value]
            if verdict.verdict == "no reference":
                raise NoReference(", ".join(verdict.missing))
            if undecided(verdict):
                raise NoReference(undecided(verdict))
            off = verdict.verdict == "compiled is off"
            if off and right_on_cpu(self._program, plan, given, tensor):
                raise NoReference(OTHER_ON_GPU)
        except NoReference as reason:
            self._unjudged(result, str(reason))
            return None
        if not off:
            return None
        return wrong_elements(result.name, result.buffer, result.value, verdict, tensor.numel())

    def _unjudged(self, result: GraphResult, reason: str) -> None:
        what = f"{result.name} of graph {self._steps.graph}"
        self.not_covered.append(f"{what}: no reference, because it depends on {reason}")

    def _is_noise(self, finding: ResultFinding) -> bool:
        # the roundings of right launches and operators may add up to more than the limit in few elements
        unjudged = self._steps.unjudged or any(one.verdict == "no reference" for one in self._steps.launches)
        if not isinstance(finding, OutputOff) or unjudged:
            return False
        wrong = finding.wrong
        few = 0 < wrong.count <= max(1, FEW * wrong.of)  # 0: all of them are off, on average
        return few and wrong.explained is not None and wrong.roundings <= UNKNOWN_NOISE * wrong.limit
