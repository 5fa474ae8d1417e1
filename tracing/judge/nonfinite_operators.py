"""Names the operators of a launch of Inductor's that make its NaN or inf.

A fused kernel computes many operators. The graph that it was made from is executed in eager, node by node,
with the inputs that the run kept of the graph's call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from tracing.analyze.judge.launched_steps import made_steps
from tracing.analyze.nonfinite.nonfinite_operator import Made, NonFiniteOperator
from tracing.judge.contents import Contents
from tracing.judge.fx.fx_program import ExecutedNode, FxProgram
from tracing.judge.fx.fx_values import FxPlan, FxValue, Given
from tracing.judge.fx.no_reference import FAILURES, NoReference
from tracing.judge.fx.operators import is_pointwise
from tracing.judge.masked_values import MaskedValues, is_made
from tracing.judge.steps.graph_memory import inputs_without_tensors
from tracing.judge.steps.values import values_of
from tracing.model import CompiledGraph, GraphCall, KernelLaunch
from tracing.store import Run
from tracing.store.graph_file import Schedule, ScheduleStep, read_graph, read_schedule
from tracing.upstream.torch.pytrees import tree_leaves, tree_tensors


def nonfinite_operators(
    run: Run, process: str, launch: KernelLaunch, kind: Made, device: torch.device
) -> list[NonFiniteOperator]:
    """The operators that make a NaN or inf among those that a launch computes; []: they are not known.

    kind   -- what the launch stored
    device -- where the operators are executed

    If one makes a NaN of an inf, those that make an inf are before it. What the program masks is left out,
    unless the launch stores what depends on random numbers. Not known are launches outside of graphs, graphs
    whose inputs were not kept or that fail in eager, operators that depend on random numbers, and what only
    the program can compute. Cost: the part of the graph up to the launch, in eager, for each such operator.
    """
    call = next(filter(lambda one: _during(one, launch), run.view(process, GraphCall, GraphCall)), None)
    graphs = {one.id: one for one in run.view(process, CompiledGraph, CompiledGraph)}
    if call is None or call.graph not in graphs:
        return []
    graph = graphs[call.graph]
    schedule, program = read_schedule(run, graph), FxProgram(read_graph(run, graph.post_grad), device)
    given = dict(_inputs(Contents.of(run, process, device), call, schedule))
    step = _step_of(run, process, call, schedule, launch)
    nodes = [one for one in step.nodes if _plan(program, [program.value(one)], given)] if step else []
    if step is None or not nodes:
        return []
    try:
        makers = dict(_makers(program, nodes, given, kind))
        known, every = _stored(program, step, schedule, given)
        made = {node: one.makes for node, one in makers.items()}
        stored = MaskedValues(program, given, known, kind).reaching(made)
    except FAILURES:
        return []
    backward = graph.phase == "backward"
    return [
        replace(one, backward=backward, stored=node in stored)
        for node, one in makers.items()
        if node in stored or not every
    ]


def _makers(
    program: FxProgram, nodes: Sequence[str], given: Given, kind: Made
) -> Iterator[tuple[str, NonFiniteOperator]]:
    # by node
    plan = program.plan([program.value(one) for one in nodes], given)
    makers = list(_of_kind(program, program.executing(plan, given), {*nodes}, kind))
    read = [value for _, one in makers for value in one.operands]
    if kind == "nan" and any(isinstance(value, float) and math.isinf(value) for value in read):
        yield from _of_kind(program, program.executing(plan, given), {*nodes}, "inf")
    yield from makers


def _plan(program: FxProgram, values: Sequence[FxValue], given: Given) -> FxPlan | None:
    # None: what they depend on is not known
    try:
        plan = program.plan(values, given)
    except NoReference:
        return None
    return None if plan.draws or plan.uninitialised else plan


def _stored(program: FxProgram, step: ScheduleStep, schedule: Schedule, given: Given) -> tuple[FxPlan, bool]:
    # for what is known of what the launch stores; and whether that is all: it may store partial results
    values = values_of(schedule, program)
    in_memory = {name for call in step.calls for name in call.arguments}
    held = [values.get(one) for one in step.buffers if schedule.location(one) in in_memory]
    known = [one for one in held if one is not None and _plan(program, [one], given)]
    return program.plan(known, given), len(known) == len(held)


def _during(call: GraphCall, launch: KernelLaunch) -> bool:
    start, stop = call.launches
    return start <= launch.index < stop and call.thread == launch.thread


def _step_of(
    run: Run, process: str, call: GraphCall, schedule: Schedule, launch: KernelLaunch
) -> ScheduleStep | None:
    start, stop = call.launches
    joiner = run.joiner(process)
    launches = [one for one in map(joiner.launch, run.rows(process)) if start <= one.index < stop]
    steps, _ = made_steps(schedule, [one for one in launches if one.thread == call.thread])
    own = (made.step for made in steps if launch.index in [one.index for one in made.launches])
    return next(own, None)


def _inputs(contents: Contents, call: GraphCall, schedule: Schedule) -> Iterator[tuple[FxValue, Any]]:
    others = inputs_without_tensors(call)
    for position, name in enumerate(schedule.inputs):
        content = contents.of_graph(call.index, position, "input")
        if position in others:
            yield FxValue(name, 0), others[position]
        elif content is not None:
            yield FxValue(name, 0), contents.tensor(content)


def _of_kind(
    program: FxProgram, executed: Iterator[ExecutedNode], own: set[str], kind: Made
) -> Iterator[tuple[str, NonFiniteOperator]]:
    # those of the launch that make one in eager, by node
    for one in executed:
        bad = [is_made(value, kind) for value in tree_tensors(one.result)]
        if one.node.name not in own or one.node.op != "call_function" or not any(map(torch.any, bad)):
            continue
        read = _values(one.read)
        by_element = is_pointwise(one.node) and len(bad) == 1
        # also where the program names the value, as the -inf of a mask
        passed = (is_made(value, kind) for value in read)
        if any((mask & bad[0] if by_element else mask).any() for mask in passed):
            continue
        line = program.graph.line_of(one.node)
        if not by_element:
            yield one.node.name, NonFiniteOperator(kind, one.node.target, line)
            continue
        at = tuple(bad[0].nonzero()[0].tolist())
        shown = (value.broadcast_to(bad[0].shape)[at].item() for value in read)
        yield one.node.name, NonFiniteOperator(kind, one.node.target, line, at, tuple(shown))


def _values(read: Any) -> list[torch.Tensor]:
    # numbers, too
    known = [one for one in tree_leaves(read) if isinstance(one, torch.Tensor | bool | int | float | complex)]
    return [torch.as_tensor(one, dtype=torch.float64 if isinstance(one, float) else None) for one in known]
