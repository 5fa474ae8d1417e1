"""Find the lines of Python whose operators one launch of compiled code computes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tracing.analyze.judge.launched_steps import made_steps
from tracing.model import CompiledGraph, GraphCall, KernelLaunch
from tracing.store import Run, rank_of
from tracing.store.graph_file import (
    OWN_KERNEL,
    FxGraph,
    PythonLine,
    Schedule,
    ScheduleStep,
    read_graph,
    read_schedule,
)

_ALLOCATING = ("aten::empty", "aten::new_empty")
_LAUNCHES = "triton_kernel_wrapper"  # of the names of nodes that launch a kernel of the program


def launch_lines(run: Run, rank: int, launch: KernelLaunch) -> tuple[PythonLine, ...]:
    """The lines that the FX nodes of a launch come from, innermost frames, in the order of the nodes.

    Empty for a launch by hand, and where the run has no graph: compiled without our hooks, or from a cache.

    Cost: a pass over the launches of its process, 1 µs each, and the joined launches of one graph call.
    """
    for process, call in _calls(run, rank, launch):
        return lines_of_call(run, process, call).get(launch.index, ())
    return ()


def filling_lines(run: Run, rank: int, launch: KernelLaunch) -> tuple[PythonLine, ...]:
    """The lines that allocate memory which a launch sets in part, as torch.empty; Inductor fills it with NaN.

    Cost: as of launch_lines.
    """
    for process, call in _calls(run, rank, launch):
        graph, computed = _computed(run, process, call)
        stored = set[str]().union(*computed.values())
        return _lines(graph, _allocating(graph, computed.get(launch.index, set()), stored))
    return ()


def lines_of_call(run: Run, process: str, call: GraphCall) -> dict[int, tuple[PythonLine, ...]]:
    """The lines of each launch of one call of a graph, by its index, as `launch_lines` gives them.

    Cost: a pass over the launches of the process, 1 µs each, and the joined launches of the call.
    """
    graph, computed = _computed(run, process, call)
    return {index: _lines(graph, names) for index, names in computed.items()}


def _calls(run: Run, rank: int, launch: KernelLaunch) -> Iterator[tuple[str, GraphCall]]:
    # the call in which a launch was made, and its process
    for process in run.processes(GraphCall):
        for call in run.view(process, GraphCall, GraphCall) if rank_of(process) == rank else ():
            if call.launches[0] <= launch.index < call.launches[1] and call.thread == launch.thread:
                yield process, call


def _computed(run: Run, process: str, call: GraphCall) -> tuple[FxGraph, dict[int, set[str]]]:
    # the graph of a call, and the names of its nodes that each launch computes
    graph = next(
        (one for one in run.view(process, CompiledGraph, CompiledGraph) if one.id == call.graph), None
    )
    if graph is None:
        return FxGraph((), ()), {}
    start, stop = call.launches
    join = run.joiner(process)
    rows = [row for row in run.rows(process) if start <= row.line.index < stop]
    launches = [one for one in map(join.launch, rows) if one.thread == call.thread]
    return read_graph(run, graph.post_grad), _nodes(read_schedule(run, graph), launches)


def functions_of_graph(run: Run, process: str, number: int) -> frozenset[str]:
    """The functions with lines in a graph: that which was compiled, and those that it calls."""
    graphs = (one for one in run.view(process, CompiledGraph, CompiledGraph) if one.id == number)
    chains = (chain for graph in graphs for chain in read_graph(run, graph.post_grad).lines)
    return frozenset(line.function for chain in chains for line in chain)


def _lines(graph: FxGraph, names: Collection[str]) -> tuple[PythonLine, ...]:
    return graph.lines_of(node for node in graph.nodes if node.name in names)


def _allocating(graph: FxGraph, names: Collection[str], stored: Collection[str]) -> set[str]:
    # the nodes without values among those from which nodes are computed, as far as no launch stores them
    nodes = {one.name: one for one in graph.nodes}
    allocating, seen, waiting = set[str](), set[str](), [*names]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in nodes or (name in stored and name not in names):
            continue
        seen.add(name)
        if nodes[name].target.startswith(_ALLOCATING):
            allocating.add(name)
        waiting += _operands(nodes[name].args)
    return allocating


def _operands(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from [value["node"]] if "node" in value else []
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for one in value:
            yield from _operands(one)


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
        own = [one for one in schedule.steps if one.code == OWN_KERNEL and _is_of(one, name)]
        turns = [index for index in others if kernel[index] == name]
        nodes |= {index: _launching(one) for index, one in zip(turns, own, strict=False)}
    return nodes


def _launching(step: ScheduleStep) -> set[str]:
    # other nodes compute the arguments, in launches of their own
    return {one for one in step.nodes if one.startswith(_LAUNCHES)} or set(step.nodes)


def _is_of(step: ScheduleStep, kernel: str) -> bool:
    return any(re.fullmatch(rf"{re.escape(kernel)}(_\d+)?", one.kernel) for one in step.calls)
