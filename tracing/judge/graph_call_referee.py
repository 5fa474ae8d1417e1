"""Judges one call of a compiled graph: its launches, its results, and the memory that these share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tracing.analyze.judge.findings import Finding, JudgedLaunch, OutputOff
from tracing.analyze.judge.launched_steps import made_steps
from tracing.judge.contents import Contents
from tracing.judge.fx.fx_values import FxValue
from tracing.judge.fx.operators import callers_of_graphs
from tracing.judge.graph_programs import GraphProgram, GraphPrograms
from tracing.judge.graph_referee import GraphReferee
from tracing.judge.recorded_calls import RecordedCall
from tracing.judge.shared_results import shared_results
from tracing.judge.steps.graph_memory import (
    BufferContent,
    GraphMemory,
    generator_states,
    inputs_without_tensors,
)
from tracing.judge.steps.judged_steps import JudgedSteps
from tracing.judge.steps.missing_launches import MissingLaunches
from tracing.judge.steps.operator_writes import OperatorWrites
from tracing.judge.steps.overwritten_inputs import OverwrittenInputs
from tracing.judge.steps.step_referee import StepReferee
from tracing.judge.traced.drawn_numbers import GraphDraws
from tracing.model import GraphCall, KernelLaunch
from tracing.numerics.default_dtype import with_default_dtype
from tracing.store.graph_file import Schedule
from tracing.upstream.torch.float32_precision import with_float32_precision


@dataclass(slots=True)
class CallJudgement:
    """What is judged of one call."""

    launches: list[JudgedLaunch] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    not_covered: list[str] = field(default_factory=list)
    draws: GraphDraws | None = None  # the random numbers that it drew
    explained: bool = False  # its steps explain what is off in its results, and may hide another fault


class GraphCallReferee:
    """Judges calls of the compiled graphs of one process."""

    def __init__(self, process: str, contents: Contents, graphs: GraphPrograms) -> None:
        self._contents, self._graphs = contents, graphs
        self._operators = OperatorWrites(contents.run, process)

    def judge(self, one: RecordedCall, missing: MissingLaunches | None) -> CallJudgement:
        """Judge one call; missing -- None: it is not known which launches it lacks."""
        # as the program did: ATen's own products are then as far from float64 as the program's
        graph = self._graphs.records[one.call.graph]
        precise = with_float32_precision(graph.precision, graph.tf32)
        with precise, with_default_dtype(graph.default_dtype):
            if missing is not None and (kernel := missing.unmatched(one.call.index)):
                return _unmatched(one, missing, kernel)
            return self._judged(one, missing)

    def _judged(self, one: RecordedCall, missing: MissingLaunches | None) -> CallJudgement:
        call, program = one.call, self._graphs.program(one.call.graph)
        made, extra = made_steps(program.schedule, one.launches)
        memory = self._memory(call, program)
        steps = JudgedSteps(call.graph, memory)
        referee = StepReferee(steps, made, self._overwritten_inputs(call, memory))
        referee.judge(call.index, missing.of(call.index) if missing is not None else {})
        judgement = CallJudgement([*steps.launches], [*steps.findings])
        judgement.not_covered += [f"graph {call.graph}: {operator}" for operator in steps.unjudged]
        self._judge_results(one, program, steps, judgement)
        others = [launch for launch in one.launches if launch.index in extra and not launch.kernel.copied]
        judgement.launches += _inside(program, call.graph, others)
        return judgement

    def _judge_results(
        self, one: RecordedCall, program: GraphProgram, steps: JudgedSteps, judgement: CallJudgement
    ) -> None:
        call, traced = one.call, program.traced
        others, saved = inputs_without_tensors(call), self._graphs.saved(call.graph)
        results = GraphReferee(call.index, traced, steps, self._contents, others, saved)
        off = results.findings(complete=one.complete)
        judgement.draws = results.draws()
        judgement.explained = steps.any_off
        if not judgement.explained:
            judgement.findings += [
                replace(each, complete=one.complete) if isinstance(each, OutputOff) else each for each in off
            ]
        backward = self._graphs.is_backward(call.graph)
        judgement.findings += shared_results(call, traced, program.lowered, backward=backward)
        judgement.not_covered += results.not_covered

    def _memory(self, call: GraphCall, program: GraphProgram) -> GraphMemory:
        held = dict(self._inputs(call, program.schedule))
        states = generator_states(call.index, program.lowered, self._contents)
        return GraphMemory(program.lowered, program.schedule, self._contents, held, self._operators, states)

    def _inputs(self, call: GraphCall, schedule: Schedule) -> Iterator[tuple[str, BufferContent]]:
        others = inputs_without_tensors(call)
        for position, name in enumerate(schedule.inputs):
            value = FxValue(name, 0)
            if position in others:
                yield name, BufferContent(value, None, {value: others[position]})
            else:
                yield name, BufferContent(value, self._contents.of_graph(call.index, position, "input"))

    def _overwritten_inputs(self, call: GraphCall, memory: GraphMemory) -> OverwrittenInputs | None:
        if self._graphs.is_backward(call.graph):  # what the forward saved for it is its own
            return None
        changed = [
            name
            for position, name in enumerate(memory.schedule.inputs)
            if self._contents.of_graph(call.index, position, "afterwards") is not None
        ]
        return OverwrittenInputs(memory.schedule, memory.operators, changed)


def _unmatched(one: RecordedCall, missing: MissingLaunches, kernel: str) -> CallJudgement:
    # several steps call a kernel that the call lacks a launch of: which step made which launch is not known
    why = f"its call of the graph lacks a launch of {kernel}, which several steps of the code call"
    own = [launch for launch in one.launches if not launch.kernel.copied]
    return CallJudgement(_without_reference(own, one.call.graph, why), [*missing.of(one.call.index).values()])


def _inside(program: GraphProgram, graph: int, launches: Sequence[KernelLaunch]) -> list[JudgedLaunch]:
    # launches of Inductor's kernels that belong to no step of the graph: of branches and of bodies of loops
    calls = (call.kernel for step in program.schedule.steps for call in step.calls)
    if callers := callers_of_graphs(program.lowered.graph.nodes):
        names = ", ".join(dict.fromkeys(callers))
        why = f"it belongs to a graph that {names} executes: only the results of that are judged"
    elif any(one.startswith("multi_kernel") for one in calls):
        why = "it is one of the kernels of a multi-kernel: only results of the graph are judged"
    else:
        return []
    return _without_reference(launches, graph, why)


def _without_reference(launches: Sequence[KernelLaunch], graph: int, why: str) -> list[JudgedLaunch]:
    return [JudgedLaunch(one.index, one.kernel_name, graph, "no reference", why=why) for one in launches]
