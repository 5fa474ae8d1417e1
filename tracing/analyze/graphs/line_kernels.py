"""Find the kernels that compute one line of a model's Python, through the FX nodes that come from it."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from tracing.errors import Problem
from tracing.model import CompiledGraph
from tracing.store import Run
from tracing.store.graph_file import (
    OWN_KERNEL,
    FxGraph,
    FxNode,
    PythonLine,
    ScheduleStep,
    read_graph,
    read_schedule,
)


def line_kernels(run: Run, position: str) -> Mapping[str, tuple[str, ...]]:
    """The kernels that compiled code launches for a line, by name, each with the FX nodes of the line.

    position -- "FILE:LINE"; the end of the file's path is enough

    A kernel fuses several lines: it also computes nodes that are not named. Empty if the run has no graph.
    Cost: reads every compiled graph of the run.
    """
    file, line = split_position(position)
    kernels: dict[str, dict[str, None]] = {}
    for graph in run.records(CompiledGraph):
        nodes = read_graph(run, graph.post_grad)
        named = {node.name for node in nodes.nodes if _comes_from(nodes, node, file, line)}
        for step in read_schedule(run, graph).steps if named else ():
            for call in step.calls:
                here = dict.fromkeys(name for name in step.nodes if name in named)
                if here:
                    kernels.setdefault(_name(step, call.kernel), {}).update(here)
    return {kernel: tuple(nodes) for kernel, nodes in kernels.items()}


def _name(step: ScheduleStep, kernel: str) -> str:
    # the program's own kernel has a number after its name in generated code
    return re.sub(r"_\d+$", "", kernel) if step.code == OWN_KERNEL else kernel


def compiled_lines(run: Run) -> set[tuple[str, int]]:
    """The lines, file and number, of which Inductor made kernels. Cost: as of `line_kernels`."""
    lines: set[tuple[str, int]] = set()
    for graph in run.records(CompiledGraph):
        nodes = read_graph(run, graph.post_grad)
        computed = {name for step in read_schedule(run, graph).steps if step.calls for name in step.nodes}
        for node in nodes.nodes:
            if node.name in computed:
                lines |= {(one.file, one.line) for one in _frames(nodes, node)}
    return lines


def without_line(run: Run, kernel: str | None = None) -> list[str]:
    """What kernels compute of which torch kept no line, each once: operators, and graphs as a score_mod.

    kernel -- only what this kernel computes; None: any

    Cost: as of `line_kernels`.
    """
    names: dict[str, None] = {}
    for graph in run.records(CompiledGraph):
        nodes = read_graph(run, graph.post_grad)
        computed = {
            name
            for step in read_schedule(run, graph).steps
            if any(kernel in (None, _name(step, call.kernel)) for call in step.calls)
            for name in step.nodes
        }
        for node in nodes.nodes:
            if node.name in computed and _lacks_line(nodes, node):
                names[node.target] = None
    return list(names)


def _lacks_line(graph: FxGraph, node: FxNode) -> bool:
    # also if all that is known of a graph that the node is, is the line that calls the node
    if node.graph is None:
        return node.op == "call_function" and not _own_frames(graph, node)
    called, inner = set(_own_frames(graph, node)), node.graph
    computed = [one for one in inner.nodes if one.op == "call_function"]
    return any(set(_own_frames(inner, one)) <= called for one in computed)


def split_position(position: str) -> tuple[str, int]:
    """File and line of "FILE:LINE"; raises Problem for another text."""
    file, _, line = position.rpartition(":")
    if not file or not line.isdecimal():
        raise Problem(f"{position} is no line of a source", "name one as FILE:LINE, kernels.py:26")
    return os.path.normpath(file), int(line)


def _comes_from(graph: FxGraph, node: FxNode, file: str, line: int) -> bool:
    wanted = PurePath(file).parts
    return any(
        one.line == line and PurePath(one.file).parts[-len(wanted) :] == wanted
        for one in _frames(graph, node)
    )


def _frames(graph: FxGraph, node: FxNode) -> Iterator[PythonLine]:
    # also those of a graph that the node is, as the score_mod or the mask_mod of a FlexAttention
    yield from _own_frames(graph, node)
    if node.graph is not None:
        for inner in node.graph.nodes:
            yield from _frames(node.graph, inner)


def _own_frames(graph: FxGraph, node: FxNode) -> Sequence[PythonLine]:
    return graph.lines[node.line] if 0 <= node.line < len(graph.lines) else ()
