"""Find the lines of Python whose operators one launch of compiled code computes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from tracing.analyze.judge.launched_steps import made_steps
from tracing.model import CompiledGraph, GraphCall, KernelLaunch
from tracing.store import Run, rank_of
from tracing.store.graph_file import FxGraph, PythonLine, Schedule, ScheduleStep, read_graph, read_schedule

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
                return lines_of_call(run, process, call).get(launch.index, ())
    return ()


def lines_of_call(run: Run, process: str, call: GraphCall) -> dict[int, tuple[PythonLine, ...]]:
    """The lines of each launch of one call of a graph, by its index, as `launch_lines` gives them.

    Cost: a pass over the launches of the process, 1 µs each, and the joined launches of the call.
    """
    graph = next(
        (one for one in run.view(process, CompiledGraph, CompiledGraph) if one.id == call.graph), None
    )
    if graph is None:
        return {}
    start, stop = call.launches
    join = run.joiner(process)
    rows = [row for row in run.rows(process) if start <= row.line.index < stop]
    launches = [one for one in map(join.launch, rows) if one.thread == call.thread]
    nodes = read_graph(run, graph.post_grad)
    computed = _nodes(read_schedule(run, graph), launches)
    return {index: _lines(nodes, names) for index, names in computed.items()}


def functions_of_graph(run: Run, process: str, number: int) -> frozenset[str]:
    """The functions with lines in a graph: that which was compiled, and those that it calls."""
    graphs = (one for one in run.view(process, CompiledGraph, CompiledGraph) if one.id == number)
    chains = (chain for graph in graphs for chain in read_graph(run, graph.post_grad).lines)
    return frozenset(line.function for chain in chains for line in chain)


def _lines(graph: FxGraph, names: Collection[str]) -> tuple[PythonLine, ...]:
    lines = (graph.line_of(node) for node in graph.nodes if node.name in names)
    return tuple(dict.fromkeys(line for line in lines if line is not None))


def _nodes(schedule: Schedule, launches: Sequence[KernelLaunch]) -> dict[int, set[str]]:
    # the names of the nodes that each launch computes, by its index
    steps, others = made_steps(schedule, launches)
    nodes: dict[int, set[str]] = {}
    for one in steps:
        for made in one.launches:
            nodes.setdefault(made.index, set()).update(one.step.nodes)
    # kernels of the program: generated code numbers their names
    kernel = {one.index: one.kernel_name for one in launches}
    for name in dict.fromkeys(kernel[index] for index in others):
        own = [one for one in schedule.steps if one.code == _OWN and _is_of(one, name)]
        turns = [index for index in others if kernel[index] == name]
        nodes |= {index: set(one.nodes) for index, one in zip(turns, own, strict=False)}
    return nodes


def _is_of(step: ScheduleStep, kernel: str) -> bool:
    return any(re.fullmatch(rf"{re.escape(kernel)}(_\d+)?", one.kernel) for one in step.calls)
