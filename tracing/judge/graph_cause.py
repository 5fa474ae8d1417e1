"""Find why a result of a graph is off although every launch is right for its inputs.

Inductor's graph passes changed what the graph computes; or a launch overwrote the result; or neither. ATen
executes the graph after the passes, each node in its own dtype, and the result is judged like that of a
kernel. In float64 a comparison such as `eq` has another value than in the dtypes of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tracing.analyze.judge.findings import (
    GENERATED,
    PASSES,
    OutputOff,
    Overwritten,
    PassesOff,
    ResultFinding,
    RoundedOtherwise,
    WrongElements,
)
from tracing.judge.contents import Content
from tracing.judge.fx.float64 import DOES_NOT_RUN, OtherDtype, executed, float64_verdicts
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.fx_values import FxValue, Given
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.steps.judged_steps import JudgedSteps

_SAVED = "AOTAutograd, whose graph saves its input for the backward without a copy, and writes to it"


@dataclass(frozen=True, slots=True)
class GraphResult:
    """A result of a call: an output, or an input that the graph overwrites."""

    name: str  # "output 0", "input 1 afterwards"
    buffer: str
    value: FxValue  # node of the graph that Inductor received
    lowered: FxValue | None  # node of the lowered graph
    content: Content


class GraphCause:
    """The cause of results of one call that are off."""

    def __init__(self, program: FxProgram, given: Given, steps: JudgedSteps, after: Given) -> None:
        """Compare the two graphs of one call.

        program -- the graph as Inductor received it; given -- its inputs
        steps   -- of the call; after -- inputs of the graph as it was lowered
        """
        self._program, self._given, self._steps, self._after = program, given, steps, after
        self._lowered = steps.memory.program
        self._refusal = ""  # why a value of the lowered graph could not be computed

    def of(self, result: GraphResult, wrong: WrongElements) -> ResultFinding:
        """Why a result is off."""
        graph, lines = self._steps.graph, self._program.lines([wrong.node])
        if result.lowered is None:
            return self._unexplained(result, wrong)
        node = result.lowered.node
        states = [FxValue(node, writes) for writes in range(result.lowered.writes + 1)]
        left = self._executed(states)
        if result.lowered not in left:  # the passes made a graph that cannot be executed
            refused = self._refusal.startswith(DOES_NOT_RUN)
            return PassesOff(graph, wrong, "", lines) if refused else self._unexplained(result, wrong)
        if self._intended(result.value, left[result.lowered]) is not False:
            return self._overwritten_later(result, wrong) or self._unexplained(result, wrong)
        for state in states[:-1]:
            if state in left and self._intended(result.value, left[state]):
                writer = self._lowered.writers[self._lowered.root(node)][state.writes]
                return self._overwritten(result, wrong, writer)
        first = self._first()
        return PassesOff(graph, wrong, first, self._program.lines([first or wrong.node]))

    def _unexplained(self, result: GraphResult, wrong: WrongElements) -> OutputOff:
        launches = self._steps.launches
        unjudged = [f"launch {one.launch} {one.kernel}" for one in launches if one.unchecked]
        needed = self._needed(result)
        rounded = [
            RoundedOtherwise(one.launch, one.kernel, tuple(nodes))
            for one in launches
            if (nodes := [node for node in one.rounded if node in needed])
        ]
        return OutputOff(
            self._steps.graph, wrong, (*unjudged, *self._steps.unjudged), tuple(rounded),
            self._program.lines([wrong.node]), launched=self._launched(result),
        )  # fmt: skip

    def _launched(self, result: GraphResult) -> bool:
        held = self._steps.memory.held.get(result.buffer)
        return held is None or held.content is not None or held.step is not None

    def _overwritten_later(self, result: GraphResult, wrong: WrongElements) -> Overwritten | None:
        # None: the call returned what the last launch that computes the result had written
        memory, held = self._steps.memory, self._steps.memory.held.get(result.buffer)
        if held is None or held.content is None or held.wrong or held.value != result.lowered:
            return None
        if memory.contents.same(held.content, result.content) is not False:
            return None
        by, operator = self._steps.writers.later(held)
        return Overwritten(
            self._steps.graph, result.name, memory.schedule.location(result.buffer), wrong.node,
            by.index if by else None, by.kernel_name if by else operator, GENERATED, wrong,
            self._program.lines([wrong.node]),
            instead="" if by or operator else memory.holder(result.content),
        )  # fmt: skip

    def _needed(self, result: GraphResult) -> Sequence[str]:
        # the nodes of the lowered graph that a result depends on
        if result.lowered is None:
            return ()
        try:
            return self._lowered.plan([result.lowered], self._after).nodes
        except NoReference:
            return ()

    def _overwritten(self, result: GraphResult, wrong: WrongElements, writer: str) -> Overwritten:
        steps = self._steps
        root = self._lowered.root(writer)
        after = self._lowered.after(writer, root)
        names = [name for name, value in steps.values.items() if value == after]
        held = steps.memory.held
        by = next((held[name].by for name in names if name in held and held[name].by), None)
        own = self._program.writers.get(self._program.root(result.value.node))
        return Overwritten(
            steps.graph, result.name, result.buffer, wrong.node,
            by.index if by else None, by.kernel_name if by else writer, _SAVED if own else PASSES,
            wrong, self._program.lines([wrong.node]),
        )  # fmt: skip

    def _first(self) -> str:
        # the first node of both graphs whose values differ
        lowered = self._lowered
        for name in lowered.order:
            if name not in self._program.nodes or lowered.is_view(name):
                continue
            if lowered.nodes[name].op != "call_function":
                continue
            value = lowered.value(name)
            left = self._executed([value]).get(value)
            if left is not None and self._intended(self._program.value(name), left) is False:
                return name
        return ""

    def _executed(self, values: Sequence[FxValue]) -> dict[FxValue, torch.Tensor]:
        # the values that ATen computes from the lowered graph
        left: dict[FxValue, torch.Tensor] = {}
        for value in values:
            try:
                plan = self._lowered.plan([value], self._after)
                if not self._steps.draws_unknown(plan):
                    left |= executed(self._lowered, plan, self._after)
            except NoReference as reason:
                self._refusal = str(reason)
            except KeyError:
                continue
        return left

    def _intended(self, value: FxValue, left: torch.Tensor) -> bool | None:
        # whether a tensor holds a value of the graph that Inductor received; None: undecided
        try:
            plan = self._program.plan([value], self._given)
            if self._steps.draws_unknown(plan):
                return None
            verdict = float64_verdicts(self._program, plan, self._given, {value: left})[value].verdict
        except OtherDtype:
            return False
        except (NoReference, KeyError):
            return None
        return None if verdict == "no reference" else verdict != "compiled is off"
