"""Find the lines of Python whose operators one launch of compiled code computes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tracing.analyze.judge.launched_steps import made_steps
from tracing.model import CompiledGraph, GraphCall, KernelLaunch
from tracing.store import Run, rank_of
from tracing.store.graph_file import PythonLine, Schedule, ScheduleStep, read_graph, read_schedule

_OWN = "UserDefinedTritonKernel"  # of Inductor: a node that launches a kernel of the program


def launch_lines(run: Run, rank: int, launch: KernelLaunch) -> tuple[PythonLine, ...]:
    """The lines that the FX nodes of a launch come from, innermost frames, in the order of the nodes.

    Empty for a launch by hand, and where the run has no graph: compiled without our hooks, or from a cache.

    Cost: a pass over the launches of its process, 1 µs each, and the joined launches of one graph call.
    """
    for process in run.processes(GraphCall):
        if rank_of(process) != rank:
            continue
        for call in run.view(process, GraphCall, GraphCall):
            if call.launches[0] <= launch.index < call.launches[1] and call.thread == launch.thread:
                return _of_call(run, process, call, launch.index)
    return ()


def _of_call(run: Run, process: str, call: GraphCall, index: int) -> tuple[PythonLine, ...]:
    graph = next(
        (one for one in run.view(process, CompiledGraph, CompiledGraph) if one.id == call.graph), None
    )
    if graph is None:
        return ()
    start, stop = call.launches
    join = run.joiner(process)
    rows = [row for row in run.rows(process) if start <= row.line.index < stop]
    launches = [one for one in map(join.launch, rows) if one.thread == call.thread]
    names = _nodes(read_schedule(run, graph), launches, index)
    nodes = read_graph(run, graph.post_grad)
    lines = (nodes.line_of(node) for node in nodes.nodes if node.name in names)
    return tuple(dict.fromkeys(line for line in lines if line is not None))


def _nodes(schedule: Schedule, launches: Sequence[KernelLaunch], index: int) -> set[str]:
    steps, others = made_steps(schedule, launches)
    if index not in others:
        return {
            name for one in steps if index in [made.index for made in one.launches] for name in one.step.nodes
        }
    # a kernel of the program: generated code numbers its name
    kernel = {one.index: one.kernel_name for one in launches}
    own = [one for one in schedule.steps if one.code == _OWN and _is_of(one, kernel[index])]
    turn = [number for number in others if kernel[number] == kernel[index]].index(index)
    return set(own[turn].nodes) if turn < len(own) else set()


def _is_of(step: ScheduleStep, kernel: str) -> bool:
    return any(re.fullmatch(rf"{re.escape(kernel)}(_\d+)?", one.kernel) for one in step.calls)
