"""Which backward formulas that the program itself wrote gave gradients in compiled graphs.

Eager computes with the same formula of a torch.autograd.Function, or of a custom operator, so no comparison
shows that it is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tracing.judge.fx.operators import ancestors, references
from tracing.model import TracedBackward, TracedCall, TracedGraph
from tracing.store import Run
from tracing.store.graph_file import FxGraph, FxNode, PythonLine, read_graph

FUNCTION = "torch.ops.higher_order.autograd_function_apply"  # of a torch.autograd.Function


def backward_formulas(run: Run, process: str) -> tuple[str, ...]:
    """What has such a formula: "a torch.autograd.Function (train.py:12)", "mylib::cube (train.py:30)".

    The line is that of the formula if it is known, else the one that applies the Function.
    """
    graphs = {one.id: one for one in run.view(process, TracedGraph, TracedGraph)}
    calls = {one.index: one.graph for one in run.view(process, TracedCall, TracedCall)}
    read: dict[int, FxGraph] = {}
    named: dict[str, None] = {}
    for backward in run.view(process, TracedBackward, TracedBackward):
        number = calls.get(backward.call)
        if number is not None and number in graphs:
            if number not in read:
                read[number] = read_graph(run, graphs[number].nodes)
            named |= dict.fromkeys(_named(read[number], _executed(read[number], backward)))
    return tuple(named)


def _executed(graph: FxGraph, backward: TracedBackward) -> Collection[str]:
    # the nodes between the results whose gradients entered and the inputs that got one
    nodes = {one.name: one for one in graph.nodes if _name(one) != "detach"}
    if backward.views or backward.others or any(map(_writes, graph.nodes)):
        return nodes  # then the arguments of nodes do not show what is computed from what
    last = graph.nodes[-1]
    results = last.args[0] if last.op == "output" and last.args else []
    needed = ancestors(nodes, references([results[i] for i in backward.entered if i < len(results)]))
    inputs = [one.name for one in graph.inputs]
    computed = {inputs[i] for i in backward.given if i < len(inputs)}  # from these inputs
    for name, node in nodes.items():
        if any(one in computed for one in references([node.args, node.kwargs])):
            computed.add(name)
    return needed & computed


def _named(graph: FxGraph, executed: Collection[str]) -> Iterator[str]:
    inner = {one.name: one.graph for one in graph.nodes if one.graph is not None}
    for node in graph.nodes:
        if node.name not in executed:
            continue
        if node.target == FUNCTION:
            if (line := _line(graph, node, inner)) is not None:
                yield f"a torch.autograd.Function ({Path(line.file).name}:{line.line})"
            continue
        if node.formula is not None:
            yield f"{node.target} ({node.formula})" if node.formula else node.target
        for name in references([node.args, node.kwargs]):
            if (called := inner.get(name)) is not None:  # as of a checkpoint
                yield from _named(called, {one.name for one in called.nodes})


def _line(graph: FxGraph, node: FxNode, inner: Mapping[str, FxGraph]) -> PythonLine | None:
    # None: a Function of torch itself
    applied = graph.frames_of(node)
    backward = [inner[one] for one in references(node.args) if one in inner][1:2]
    frames = [graph.frames_of(one)[len(applied) :] for graph in backward for one in graph.nodes]
    own = [one for one in frames if one]
    lines = own[0] if own else applied[-1:]
    return next((one for one in lines if not one.is_of_compiler), None)


def _name(node: FxNode) -> str:
    return node.target.rpartition(".")[2].rpartition("::")[2]


def _writes(node: FxNode) -> bool:
    name = _name(node)
    inplace = name.endswith("_") and not name.endswith("__") and node.op in ("call_function", "call_method")
    return bool(node.written) or name == "setitem" or inplace
