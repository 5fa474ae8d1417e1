"""Names the operators of a launch of Inductor's that make its NaN or inf.

A fused kernel computes many operators. The graph that it was made from is executed in eager, node by node,
with the inputs that the run kept of the graph's call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from tracing.analyze.judge.launched_steps import made_steps
from tracing.analyze.nonfinite.nonfinite_operator import Made, NonFiniteOperator
from tracing.judge.contents import Contents
from tracing.judge.fx_program import ExecutedNode, FxProgram, FxValue, Given
from tracing.judge.no_reference import FAILURES, NoReference
from tracing.judge.operators import is_pointwise
from tracing.model import CompiledGraph, GraphCall, KernelLaunch
from tracing.store import Run
from tracing.store.graph_file import Schedule, read_graph, read_schedule
from tracing.upstream.torch.pytrees import tree_leaves


def nonfinite_operators(
    run: Run, process: str, launch: KernelLaunch, kind: Made, device: torch.device
) -> list[NonFiniteOperator]:
    """The operators that make a NaN or inf among those that a launch computes; []: they are not known.

    kind   -- what the launch stored
    device -- where the operators are executed

    If one makes a NaN of an inf, those that make an inf are before it. The program may mask what some of
    several make, as by torch.where: those are no cause. Not known are launches outside of graphs, graphs
    whose inputs were not kept or that fail in eager, operators that depend on random numbers, and what only
    the program can compute. Cost: the part of the graph up to the launch, in eager.
    """
    call = next(filter(lambda one: _during(one, launch), run.view(process, GraphCall, GraphCall)), None)
    graphs = {one.id: one for one in run.view(process, CompiledGraph, CompiledGraph)}
    if call is None or call.graph not in graphs:
        return []
    graph = graphs[call.graph]
    schedule, program = read_schedule(run, graph), FxProgram(read_graph(run, graph.post_grad), device)
    given = dict(_inputs(Contents.of(run, process, device), call, schedule))
    nodes = [one for one in _nodes_of(run, process, call, schedule, launch) if _known(program, one, given)]
    if not nodes:
        return []
    try:
        return list(_makers(program, nodes, given, kind))
    except FAILURES:
        return []


def _makers(
    program: FxProgram, nodes: Sequence[str], given: Given, kind: Made
) -> Iterator[NonFiniteOperator]:
    plan = program.plan([program.value(one) for one in nodes], given)
    makers = list(_of_kind(program, program.executing(plan, given), {*nodes}, kind))
    read = [value for one in makers for value in one.operands]
    if kind == "nan" and any(isinstance(value, float) and math.isinf(value) for value in read):
        yield from _of_kind(program, program.executing(plan, given), {*nodes}, "inf")
    yield from makers


def _known(program: FxProgram, node: str, given: Given) -> bool:
    try:
        plan = program.plan([program.value(node)], given)
    except NoReference:
        return False
    return not (plan.draws or plan.uninitialised)


def _during(call: GraphCall, launch: KernelLaunch) -> bool:
    start, stop = call.launches
    return start <= launch.index < stop and call.thread == launch.thread


def _nodes_of(
    run: Run, process: str, call: GraphCall, schedule: Schedule, launch: KernelLaunch
) -> Sequence[str]:
    start, stop = call.launches
    joiner = run.joiner(process)
    launches = [one for one in map(joiner.launch, run.rows(process)) if start <= one.index < stop]
    steps, _ = made_steps(schedule, [one for one in launches if one.thread == call.thread])
    own = (made.step.nodes for made in steps if launch.index in [one.index for one in made.launches])
    return next(own, ())


def _inputs(contents: Contents, call: GraphCall, schedule: Schedule) -> Iterator[tuple[FxValue, Any]]:
    for position, name in enumerate(schedule.inputs):
        content = contents.of_graph(call.index, position, "input")
        if position in call.numbers:
            yield FxValue(name, 0), call.numbers[position]
        elif content is not None:
            yield FxValue(name, 0), contents.tensor(content)


def _of_kind(
    program: FxProgram, executed: Iterator[ExecutedNode], own: set[str], kind: Made
) -> Iterator[NonFiniteOperator]:
    # those of the launch that make one in eager
    for one in executed:
        bad = [_bad(value, kind) for value in _tensors(one.result)]
        if one.node.name not in own or one.node.op != "call_function" or not any(map(torch.any, bad)):
            continue
        read = _values(one.read)
        if any(_bad(value, kind).any() for value in read):
            continue  # also where the program names the value, as the -inf of a mask
        line = program.graph.line_of(one.node)
        if not is_pointwise(one.node) or len(bad) != 1:
            yield NonFiniteOperator(kind, one.node.target, line)
            continue
        at = tuple(bad[0].nonzero()[0].tolist())
        shown = (value.broadcast_to(bad[0].shape)[at].item() for value in read)
        yield NonFiniteOperator(kind, one.node.target, line, at, tuple(shown))


def _bad(tensor: torch.Tensor, kind: Made) -> torch.Tensor:
    return torch.isnan(tensor) if kind == "nan" else torch.isinf(tensor)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [one for one in tree_leaves(value) if isinstance(one, torch.Tensor)]


def _values(read: Any) -> list[torch.Tensor]:
    # numbers, too
    known = [one for one in tree_leaves(read) if isinstance(one, torch.Tensor | bool | int | float | complex)]
    return [torch.as_tensor(one, dtype=torch.float64 if isinstance(one, float) else None) for one in known]
