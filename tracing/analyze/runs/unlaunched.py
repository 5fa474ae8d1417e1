"""Which kernels were compiled and not launched, and why a run has no launch of a Triton kernel."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from tracing.analyze.runs.proposed_setting import proposed_setting
from tracing.model import (
    Compilation,
    CompiledGraph,
    Failure,
    FrameCompile,
    Kernel,
    LaunchLine,
    NotCovered,
    Outcome,
    Record,
    TracedGraph,
)
from tracing.model.first_names import first_names
from tracing.model.run_info import LAUNCHLESS
from tracing.store import Run, rank_of
from tracing.store.crash import crashes
from tracing.store.graph_file import Schedule, ScheduleStep, read_graph, read_schedule

R = TypeVar("R", bound=Record)
_SHOWN = 4  # names in one sentence
_PART = "_operator.getitem"  # one of several results of an operator
_EAGER = (  # backends of torch, and of this project, that execute graphs in eager
    "eager",
    "eager_debug",
    "eager_noexcept",
    "pre_dispatch_eager",
    "aot_eager",
    "aot_eager_decomp_partition",
    "aot_eager_decomp_partition_crossref",
    "aot_eager_decomp_partition_with_mode",
    "aot_eager_default_partitioner",
    "mock_backend",
)


class _Launch(Record, frozen=True):
    # what is needed of a LaunchLine
    signature: int


def unlaunched(run: Run) -> list[Compilation]:
    """The compilations that no recorded launch used; each hash is listed once."""
    launched = {one.hash for one in run.records(Kernel)}
    first = {one.hash: one for one in run.records(Compilation) if one.hash not in launched}
    return list(first.values())


def left_out(run: Run) -> list[str]:
    """What the options of a run left out: "launches that `--launches 0:1` leaves out"."""
    options = run.info.selection.options()
    if not options:
        return []
    launched = {one.name for one in launched_kernels(run)}
    compiled = dict.fromkeys(one.kernel_name for one in run.records(Compilation))
    names = [name for name in compiled if name not in launched]
    known = f"; compiled, and without a recorded launch: {first_names(names, _SHOWN)}" if names else ""
    return [f"launches that `{shlex.join(options)}` leaves out{known}"]


def reasons_for_no_kernel(run: Run, rank: int | None = None) -> list[str]:
    """Why a run has no launch of a Triton kernel, a sentence each; empty if it has one.

    rank -- of this rank's launches only, while other ranks may still run; None: of all ranks'

    Empty also for a run that leaves out launches by number, phase, rank or step.
    """
    selection = run.info.selection
    if selection.launches or selection.phases or selection.ranks or run.info.steps.partial:
        return []
    if run.info.command in LAUNCHLESS:
        return [f"`tracing {run.info.command}` records no launch"]
    recorded = _Recorded(run, rank)
    kernels = recorded.kernels()
    if any(one.kind != "cpp" for one in kernels):
        return []
    if left_out := [*_left_out(recorded)]:
        return list(dict.fromkeys(left_out))
    if ended := crashes(run.path):
        return [f"{ended[0].signal} ended the process; launches shortly before that are not written"]
    frames = list(_frames(recorded))
    compiled = [*dict.fromkeys(one.name for one in kernels)]
    reasons = [
        *([f"Inductor compiled C++, {first_names(compiled, _SHOWN)}"] if compiled else []),
        *frames,
        *_backends(recorded),
        *_libraries(recorded),
        *(
            one.sentence
            for one in recorded.records(Failure)
            if not any(frame.endswith(one.sentence) for frame in frames)  # the compile of it failed so
        ),
        *(
            f"not covered, and may have launched one: {one.what}"
            for one in recorded.records(NotCovered)
            if one.setting
        ),
    ]
    return list(dict.fromkeys(reasons or _unexplained(recorded)))  # ranks mostly have the same ones


def launched_kernels(run: Run) -> list[Kernel]:
    """The kernels of recorded launches: the options can leave out a launch, and not its kernel."""
    return _Recorded(run).kernels()


@dataclass(frozen=True, slots=True)
class _Recorded:
    # what one rank recorded in a run; None: what all did
    run: Run
    rank: int | None = None

    def records(self, kind: type[R]) -> Iterator[R]:
        for process in self._processes(kind):
            yield from self.run.view(process, kind, kind)

    def kernels(self) -> list[Kernel]:
        # those that were launched
        kernels: dict[str, Kernel] = {}
        for process in self._processes(LaunchLine):
            known = self.run.signatures(process)
            numbers = {one.signature for one in self.run.view(process, LaunchLine, _Launch)}
            for number in numbers & known.keys():
                kernels[known[number][0].hash] = known[number][0]
        return list(kernels.values())

    def _processes(self, kind: type[Record]) -> list[str]:
        return [one for one in self.run.processes(kind) if self.rank in (None, rank_of(one))]


def _left_out(recorded: _Recorded) -> Iterator[str]:
    # by the options of the recording
    names = sorted({one.kernel_name for one in recorded.records(Compilation)})
    for wanted in recorded.run.info.selection.kernels:
        near = get_close_matches(wanted, names, n=3, cutoff=0.5) or names[:_SHOWN]
        compiled = f"the nearest compiled kernels are {', '.join(near)}" if near else "no kernel was compiled"
        yield f"`--kernel {wanted}` matches none; {compiled}"


def _frames(recorded: _Recorded) -> Iterator[str]:
    frames = list(recorded.records(FrameCompile))
    if not frames and not any(recorded.records(CompiledGraph)):
        yield from _none_compiled(recorded)
    breaks = [(frame, one) for frame in frames for one in frame.breaks if not frame.raised]
    for at, reason in dict.fromkeys(
        (one.python, _described(one.reason))
        for frame, one in breaks
        if one.python or one.reason != frame.eager
    ):
        yield f"a graph break{f' at {at}' if at else ''}: {reason}"
    shown = {one.reason for _, one in breaks if one.python}
    for frame in frames:
        if frame.raised:
            at = next((f" at {one.python}" for one in frame.breaks if one.python), "")
            yield f"the compile of {frame.function} ({frame.python}) failed{at}: {_described(frame.eager)}"
        elif frame.eager and frame.eager not in shown:
            yield f"{frame.function} ({frame.python}) stays in eager: {_described(frame.eager)}"
    if frames and not breaks and not any(frame.operators or frame.raised for frame in frames):
        yield "the graphs that torch.compile made compute nothing"


def _none_compiled(recorded: _Recorded) -> Iterator[str]:
    statuses = {one.status for one in recorded.records(Outcome)}
    if "failed" in statuses and any(recorded.records(Failure)):
        return  # it is the reason
    if "failed" in statuses:
        yield f"the {recorded.run.info.kind} failed before a kernel was launched"
    elif recorded.run.info.kind == "case" and statuses - {"interrupted"}:
        yield "torch.compile compiled none of its code: it is disabled there, or no tensor is computed"
    elif statuses - {"interrupted"}:  # it has ended
        # as by triton.compile
        names = [*dict.fromkeys(one.kernel_name for one in recorded.records(Compilation))]
        compiled = f"the {recorded.run.info.kind} compiles {first_names(names, _SHOWN)}"
        yield f"{compiled}, and launches nothing" if names else "torch.compile compiled nothing"


def _backends(recorded: _Recorded) -> Iterator[str]:
    # that Inductor is no part of
    traced = {one.compile_id for one in recorded.records(TracedGraph)}
    for frame in recorded.records(FrameCompile):
        known = frame.backend not in ("", "inductor")
        if known and frame.operators and not frame.raised and frame.compile_id not in traced:
            in_eager = frame.backend in _EAGER
            does = "executes its graphs in eager" if in_eager else "does not pass its graphs to Inductor"
            yield f'the backend "{frame.backend}" {does}'


def _libraries(recorded: _Recorded) -> Iterator[str]:
    # operators of compiled graphs, and not those that the program calls in eager
    raised = any(one.raised for one in recorded.records(FrameCompile))
    if raised or any(recorded.records(Failure)):  # that is the reason
        return
    names: dict[str, None] = {}
    for graph in recorded.records(CompiledGraph):
        schedule = read_schedule(recorded.run, graph)
        steps = [step for step in schedule.steps if step.kind == "library"]
        called = {node for step in steps for node in _called(step, schedule)}
        nodes = read_graph(recorded.run, graph.post_grad).nodes if called else ()
        calls = (one for one in nodes if one.name in called and one.op == "call_function")
        names |= dict.fromkeys(one.target for one in calls if one.target != _PART)
    if names:
        yield f"operators that are calls of a library or fall back to ATen: {first_names([*names], _SHOWN)}"


def _called(step: ScheduleStep, schedule: Schedule) -> Sequence[str]:
    # a step was also made from the nodes that prepare the arguments of its call
    own = [schedule.buffers[one].node for one in step.buffers if one in schedule.buffers]
    return own if all(own) and own else step.nodes


def _unexplained(recorded: _Recorded) -> Iterator[str]:
    # where nothing that was recorded is a reason
    graphs = list(recorded.records(CompiledGraph))
    kinds = {step.kind for one in graphs for step in read_schedule(recorded.run, one).steps}
    if any(one.status == "failed" for one in recorded.records(Outcome)):
        yield f"the {recorded.run.info.kind} failed before it launched one"
    elif graphs and kinds <= {"none"}:
        yield "the graphs that Inductor compiled need no kernel"


def _described(reason: str) -> str:
    setting = proposed_setting(reason)
    return f"{_first(reason)}; torch proposes: {setting}" if setting else _first(reason)


def _first(text: str) -> str:
    # with the following lines while it ends with a colon: "backend='inductor' raised:"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    count = next((n for n, line in enumerate(lines, 1) if not line.endswith(":")), len(lines))
    return " ".join(lines[:count]) or "no reason is known"
