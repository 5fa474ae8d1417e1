"""Judges every launch of Inductor's kernels in a run that kept their inputs and outputs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from tracing.analyze.judge.findings import Finding, JudgedLaunch, OutputOff
from tracing.analyze.judge.judgement import RunJudgement
from tracing.analyze.judge.launched_steps import LaunchedStep, made_steps
from tracing.analyze.runs.recorded_steps import not_covered
from tracing.errors import page
from tracing.judge.allowed_tf32 import allowed_tf32
from tracing.judge.contents import Contents, device_of
from tracing.judge.drawn_numbers import GraphDraws
from tracing.judge.fx_program import FxProgram
from tracing.judge.fx_values import FxValue
from tracing.judge.graph_memory import BufferContent, GraphMemory, generator_states, inputs_without_tensors
from tracing.judge.graph_referee import GraphReferee
from tracing.judge.missing_launches import MissingLaunches
from tracing.judge.operator_writes import OperatorWrites
from tracing.judge.operators import callers_of_graphs, is_custom
from tracing.judge.overwritten_inputs import OverwrittenInputs
from tracing.judge.own_kernels import Interpreted, judged_own
from tracing.judge.shared_results import shared_results
from tracing.judge.step_referee import StepReferee
from tracing.judge.suspect_nodes import located
from tracing.judge.traced_executions import traced_executions
from tracing.judge.traced_referee import TracedReferee
from tracing.model import CompiledGraph, GraphCall, KernelLaunch, Outcome, TracedCall
from tracing.model.first_names import first_names
from tracing.numerics.default_dtype import with_default_dtype
from tracing.store import Run
from tracing.store.graph_file import Schedule, read_graph, read_schedule
from tracing.upstream.torch.float32_precision import with_float32_precision

_NAMED = 8  # graphs
_BEFORE = "what torch.compile does before Inductor's post-grad passes, as decompositions and joint passes do"
_FURTHER = "of graph passes or a step before them: what judges these depends on what is wrong already"
_BISECT = (
    f"`tracing bisect` names the step of a program that checks its results ({page('docs/bisect-case.md')})"
)


def judge_run(
    run: Run,
    process: str,
    progress: Callable[[str], None] = lambda text: None,
    interpreted: Interpreted | None = None,
    in_eager: Sequence[str] = (),
    stopped_by: Callable[[], str] = str,
) -> RunJudgement:
    """Judge the launches of one process, in launch order.

    interpreted -- the reference of kernels that the program itself launches; None: on a virtual GPU
    in_eager    -- names of such kernels that the case launches in eager, too
    stopped_by  -- asked before each call of a graph: the signal that ends the judgement; "": none

    Cost: the FX nodes of each launch in eager and in float64, 9 times where rounding has to be measured; and
    each graph as a whole. Memory: what one graph needs in float64.
    """
    referee = _RunReferee(run, process, progress, interpreted, stopped_by)
    return dataclasses.replace(referee.judge(), in_eager=tuple(in_eager))


class _RunReferee:
    def __init__(
        self,
        run: Run,
        process: str,
        progress: Callable[[str], None],
        interpreted: Interpreted | None,
        stopped_by: Callable[[], str],
    ) -> None:
        self._run, self._process, self._progress = run, process, progress
        self._interpreted, self._stopped_by = interpreted, stopped_by
        self._contents = Contents.of(run, process, device_of(run))
        self._operators = OperatorWrites(run, process)
        self._graphs = {one.id: one for one in run.view(process, CompiledGraph, CompiledGraph)}
        self._programs: dict[int, tuple[FxProgram, FxProgram, Schedule]] = {}
        self._missing: dict[int, MissingLaunches] = {}  # by graph
        self._draws: dict[int, GraphDraws] = {}  # of calls of compiled graphs
        self._launches: list[JudgedLaunch] = []
        self._findings: list[Finding] = []
        self._hidden: set[int] = set()  # graphs of which a fault may hide another one
        self._not_covered: list[str] = [
            f"{one.what} ({one.setting})" if one.setting else one.what for one in not_covered(run)
        ]

    def judge(self) -> RunJudgement:
        launches = [one for one in map(self._run.joiner(self._process).launch, self._run.rows(self._process))]
        calls = sorted(self._run.view(self._process, GraphCall, GraphCall), key=lambda one: one.index)
        judged: set[int] = set()
        own = {call.index: _launched_by(call, launches) for call in calls}
        self._find_missing(calls, own)
        for done, call in enumerate(calls):
            if self._stopped_by():
                break
            self._progress(f"judging: graph call {done + 1} of {len(calls)}")
            # as the program did: ATen's own products are then as far from float64 as the program's
            graph = self._graphs[call.graph]
            precise = with_float32_precision(graph.precision, graph.tf32)
            with precise, with_default_dtype(graph.default_dtype):
                judged |= self._call(call, *own[call.index])
        self._traced(calls)
        if self._hidden:
            self._not_covered.append(f"further faults in {self._named(self._hidden)}, {_FURTHER}")
        for launch in launches:
            if launch.index not in judged:
                self._launches.append(self._stopped_before(launch) or self._without_call(launch))
        order = sorted(self._launches, key=lambda one: one.launch)
        outcome = self._outcome()
        of_case = self._run.info.kind == "case"
        not_covered = tuple(dict.fromkeys(self._not_covered))
        answer = RunJudgement(tuple(order), tuple(self._findings), not_covered, outcome, of_case=of_case)
        return dataclasses.replace(answer, stopped_by=self._stopped_by())

    def _find_missing(
        self, calls: Sequence[GraphCall], own: Mapping[int, tuple[Sequence[KernelLaunch], bool]]
    ) -> None:
        if self._not_covered:  # what was not seen may have been launched
            return
        made: dict[int, dict[int, list[LaunchedStep]]] = {}
        for call in calls:
            launches, complete = own[call.index]
            if complete:
                made.setdefault(call.graph, {})[call.index] = made_steps(
                    self._program(call.graph)[2], launches
                )[0]
        for graph, steps in made.items():
            self._missing[graph] = MissingLaunches(graph, self._program(graph)[1], steps)

    def _traced(self, calls: Sequence[GraphCall]) -> None:
        # of a case, eager's results check what torch.compile does before Inductor
        outcome, of_case = self._outcome(), self._run.info.kind == "case"
        if not calls or (of_case and outcome is not None and outcome.status == "passed"):
            return
        referee = TracedReferee(self._run, self._process, self._contents)
        unchecked = {one.index: one.graph for one in calls}
        off: set[int] = set()  # calls of which something is off: their backward depends on it
        draws: dict[int, list[GraphDraws]] = {}  # of each call
        for one in traced_executions(self._run, self._process, calls):
            if self._stopped_by():
                break
            for call in one.inner:
                unchecked.pop(call.index, None)
            if any(map(self._is_off, one.inner)):
                off.add(one.call)
            if isinstance(one.record, TracedCall):
                draws[one.call] = [self._draws[call.index] for call in one.inner if call.index in self._draws]
            if one.call in off:
                self._hidden.update(call.graph for call in one.inner)
                continue
            self._progress(f"judging: call {one.record.index} of a graph that Dynamo traced")
            received = self._program(one.graph)[0]
            judged = referee.judge(one, self._unjudged(one.inner), draws.get(one.call, ()), received)
            if judged.off:
                off.add(one.call)
            self._findings += located(judged, one.inner, received.graph, self._contents)
            self._not_covered += judged.not_covered
        if unchecked and not of_case:
            stopped = f"{self._stopped_by()} ended the judgement before it" if self._stopped_by() else ""
            self._not_covered.append(f"{_BEFORE}, to {self._named(unchecked.values())}: {stopped or _BISECT}")

    def _named(self, graphs: Iterable[int]) -> str:
        phases = {one: self._graphs[one].phase for one in sorted({*graphs})}
        names = [f"{one} (backward)" if phase == "backward" else f"{one}" for one, phase in phases.items()]
        return f"graph {first_names(names, _NAMED)}"

    def _unjudged(self, calls: Sequence[GraphCall]) -> list[str]:
        launches = [one for one in self._launches if one.unchecked]
        spans = [range(*one.launches) for one in calls]
        return [
            f"launch {one.launch} {one.kernel}"
            for one in launches
            if any(one.launch in span for span in spans)
        ]

    def _is_off(self, call: GraphCall) -> bool:
        # something in it, or something that it left, is off by the graph that Inductor received
        start, stop = call.launches
        launches = (one for one in self._launches if start <= one.launch < stop)
        findings = (one for one in self._findings if one.graph == call.graph)
        return any(one.verdict == "off" for one in launches) or any(findings)

    def _outcome(self) -> Outcome | None:
        # torch.compile trusts the schemas of the operators in its graphs only
        outcome = next(iter(self._run.view(self._process, Outcome, Outcome)), None)
        if outcome is None or self._run.info.kind == "case":
            return outcome
        compiled = tuple(one for one in outcome.undeclared if one.partition(" ")[0] in self._own_operators)
        return msgspec.structs.replace(outcome, undeclared=compiled)

    @functools.cached_property
    def _own_operators(self) -> set[str]:
        # those of the program that its graphs call: "mylib::op"
        nodes = (node for one in self._graphs for node in self._program(one)[0].nodes.values())
        return {one.target.partition(".")[0] for one in nodes if is_custom(one)}

    def _stopped_before(self, launch: KernelLaunch) -> JudgedLaunch | None:
        if not (signal := self._stopped_by()):
            return None
        graph = -1 if launch.kernel.copied else self._generated.get(launch.kernel_name, -1)
        why = f"{signal} ended the judgement before it"
        return JudgedLaunch(launch.index, launch.kernel_name, graph, "no reference", why=why)

    def _without_call(self, launch: KernelLaunch) -> JudgedLaunch:
        graph = None if launch.kernel.copied else self._generated.get(launch.kernel_name)
        if graph is not None:
            why = f"its call of graph {graph} did not end, or another recording recorded the graph's code"
            return JudgedLaunch(launch.index, launch.kernel_name, graph, "no reference", why=why)
        module = launch.kernel.module
        source = self._run.text(module) if module else ""
        return judged_own(launch, source, self._contents, self._interpreted)

    @functools.cached_property
    def _generated(self) -> dict[str, int]:
        # the graph of each kernel that Inductor wrote
        return {
            call.kernel: graph.id
            for graph in self._graphs.values()
            for step in read_schedule(self._run, graph).steps
            for call in step.calls
        }

    def _saved(self, forward: int) -> set[str]:
        # AOTAutograd's backward has inputs of the same names
        own = self._graphs[forward]
        return {
            name
            for one in self._graphs.values()
            if (own.phase, one.phase, one.compile_id) == ("forward", "backward", own.compile_id)
            for name in self._program(one.id)[0].inputs
        }

    def _call(self, call: GraphCall, launches: Sequence[KernelLaunch], complete: bool) -> set[int]:
        # complete -- every launch of the call was recorded
        traced, lowered, schedule = self._program(call.graph)
        steps, extra = made_steps(schedule, launches)
        held = dict(self._inputs(call, schedule))
        states = generator_states(call.index, lowered, self._contents)
        memory = GraphMemory(lowered, schedule, self._contents, held, self._operators, states)
        referee = StepReferee(call.graph, memory, self._overwritten_inputs(call, memory))
        missing = self._missing.get(call.graph)
        if missing is not None and (kernel := missing.unmatched(call.index)):
            self._findings += missing.of(call.index).values()
            why = f"its call of the graph lacks a launch of {kernel}, which several steps of the code call"
            own = [one for one in launches if not one.kernel.copied]
            self._launches += [
                JudgedLaunch(one.index, one.kernel_name, call.graph, "no reference", why=why) for one in own
            ]
            return {one.index for one in own}
        referee.judge(steps, missing.of(call.index) if missing is not None else {})
        referee.returned(call.index)
        self._launches += referee.launches
        self._findings += referee.findings
        self._not_covered += [f"graph {call.graph}: {one}" for one in referee.unjudged]
        saved = self._saved(call.graph)
        whole = GraphReferee(call.index, traced, referee, self._contents, inputs_without_tensors(call), saved)
        results = whole.findings(complete=complete)
        if (draws := whole.draws()) is not None:
            self._draws[call.index] = draws
        if self._explains(referee):
            self._hidden.add(call.graph)
        else:
            self._findings += [
                dataclasses.replace(one, complete=complete) if isinstance(one, OutputOff) else one
                for one in results
            ]
        backward = self._graphs[call.graph].phase == "backward"
        self._findings += shared_results(call, traced, lowered, backward=backward)
        self._not_covered += whole.not_covered
        others = [one for one in launches if one.index in extra and not one.kernel.copied]
        inner = _inside(lowered, schedule, call.graph, others)
        self._launches += inner
        return {one.index for one in launches} - {*extra} | {one.launch for one in inner}

    def _overwritten_inputs(self, call: GraphCall, memory: GraphMemory) -> OverwrittenInputs | None:
        if self._graphs[call.graph].phase == "backward":  # what the forward saved for it is its own
            return None
        changed = [
            name
            for position, name in enumerate(memory.schedule.inputs)
            if self._contents.of_graph(call.index, position, "afterwards") is not None
        ]
        return OverwrittenInputs(memory.schedule, memory.operators, changed)

    @staticmethod
    def _explains(referee: StepReferee) -> bool:
        return bool(referee.findings) or any(one.verdict == "off" for one in referee.launches)

    def _program(self, graph: int) -> tuple[FxProgram, FxProgram, Schedule]:
        if graph not in self._programs:
            one = self._graphs[graph]
            tf32 = allowed_tf32(self._run.info.environment, one)
            traced, lowered = (
                FxProgram(read_graph(self._run, blob), self._contents.device, tf32)
                for blob in (one.nodes, one.post_grad)
            )
            self._programs[graph] = traced, lowered, read_schedule(self._run, one)
        return self._programs[graph]

    def _inputs(self, call: GraphCall, schedule: Schedule) -> Iterator[tuple[str, BufferContent]]:
        others = inputs_without_tensors(call)
        for position, name in enumerate(schedule.inputs):
            value = FxValue(name, 0)
            if position in others:
                yield name, BufferContent(value, None, {value: others[position]})
            else:
                yield name, BufferContent(value, self._contents.of_graph(call.index, position, "input"))


def _launched_by(call: GraphCall, launches: Sequence[KernelLaunch]) -> tuple[list[KernelLaunch], bool]:
    # the launches of a call, and whether all of them were recorded
    start, stop = call.launches
    during = [one for one in launches if start <= one.index < stop]
    return [one for one in during if one.thread == call.thread], len(during) == stop - start


def _inside(
    program: FxProgram, schedule: Schedule, graph: int, launches: Sequence[KernelLaunch]
) -> list[JudgedLaunch]:
    # launches of Inductor's kernels that belong to no step of the graph: of branches and of bodies of loops
    calls = (call.kernel for step in schedule.steps for call in step.calls)
    if callers := callers_of_graphs(program.graph.nodes):
        names = ", ".join(dict.fromkeys(callers))
        why = f"it belongs to a graph that {names} executes: only the results of that are judged"
    elif any(one.startswith("multi_kernel") for one in calls):
        why = "it is one of the kernels of a multi-kernel: only results of the graph are judged"
    else:
        return []
    return [JudgedLaunch(one.index, one.kernel_name, graph, "no reference", why=why) for one in launches]
