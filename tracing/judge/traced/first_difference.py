"""Finds the first node of Dynamo's graph whose value the graph that Inductor received does not compute.

A decomposition replaces a node by several, of which one has its value, perhaps in another shape. So both
graphs are executed in float64 on the inputs of one call, and the elements of their values are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch

from tracing.judge.contents import Contents
from tracing.judge.fx.float64 import exact_values
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.fx_values import FxValue
from tracing.judge.fx.operators import ancestors, references
from tracing.judge.steps.graph_memory import generator_states, inputs_without_tensors
from tracing.model import GraphCall
from tracing.numerics.reference import Expected
from tracing.store.graph_file import FxGraph, FxNode

_APART = 2.0**-20  # of an element: two computations in float64 differ by less
_NEGLIGIBLE = 2.0**-28  # of a usual element
_PART = "_operator.getitem"  # of a tuple; it has no decomposition
COMPARED = 1 << 24  # elements of all values of Dynamo's graph; more are not kept


def received_values(call: GraphCall, program: FxProgram, contents: Contents) -> list[Expected]:
    """The values in float64 that the graph which Inductor received computes in one call.

    Raises NoReference if they are not known.
    """
    given: dict[FxValue, Any] = {
        FxValue(program.inputs[position], 0): one for position, one in inputs_without_tensors(call).items()
    }
    for position, name in enumerate(program.inputs):
        if (content := contents.of_graph(call.index, position, "input")) is not None:
            given[FxValue(name, 0)] = contents.tensor(content)
    states = generator_states(call.index, program, contents)
    given |= {value: contents.tensor(one) for value, one in states.items()}
    made = [program.value(node.name) for node in program.graph.nodes if node.op == "call_function"]
    exact = exact_values(program, program.plan(made, given), given)
    inputs = {value: one for value, one in given.items() if isinstance(one, torch.Tensor)}
    return [*exact.values(), *(Expected(one, torch.zeros(())) for one in inputs.values())]


class FirstDifference(NamedTuple):
    """Where Dynamo's graph and the graph that Inductor received part."""

    node: FxNode  # the first of Dynamo's graph whose value the other one does not return, or pass on
    before: tuple[FxNode, ...]  # that it reads: their values are computed, but may not be what is passed on


def first_difference(
    graph: FxGraph, made: Mapping[str, Expected], received: Iterable[Expected], wrong: str
) -> FirstDifference | None:
    """Where the values of a graph part from others; None: that is not known.

    graph    -- Dynamo's
    made     -- values of its nodes in float64, by name
    received -- the others
    wrong    -- a node of the graph, on which the program's result differs

    A value that is not among the others, and from which one that is there was computed, is right: the other
    graph computes that one without it.
    """
    others = _Values(received)
    nodes = {node.name: node for node in graph.nodes}
    read = {node.name: {*references([node.args, node.kwargs])} for node in graph.nodes}
    known = {node.name for node in graph.nodes if node.op in ("placeholder", "get_attr")}
    for name, names in read.items():
        # what is no tensor, as a tuple of them, is known by what it is made of
        if others.has(made[name]) if name in made else names <= known:
            known.add(name)
    inexact = [name for name in known if name in made and made[name].exact.is_floating_point()]
    right, needed = ancestors(nodes, inexact), ancestors(nodes, [wrong])
    for node in graph.nodes:
        differs = node.name not in known | right and read[node.name] <= known
        returned = node.name == wrong and wrong in known  # its value is there, and is not what is returned
        if node.name in needed and (differs or returned):
            return FirstDifference(node, _before(graph, made, node)) if _is_certain(node, made) else None
    return None


def _is_certain(node: FxNode, made: Mapping[str, Expected]) -> bool:
    value = made.get(node.name)
    return value is not None and not (value.missing or value.drawn)


def _before(graph: FxGraph, made: Mapping[str, Expected], node: FxNode) -> tuple[FxNode, ...]:
    # the nodes that it reads, and what these have their elements from, as views do, in the order of the graph
    nodes = {one.name: one for one in graph.nodes}
    left, before = [*references([node.args, node.kwargs])], set[str]()
    while left:
        name = left.pop()
        if name not in before and "call" in nodes[name].op:
            before.add(name)
            read = [nodes[one] for one in references([nodes[name].args, nodes[name].kwargs])]
            left += [one.name for one in read if _same_elements(one, name, made)]
    return tuple(one for one in graph.nodes if one.name in before and one.target != _PART)


def _same_elements(read: FxNode, name: str, made: Mapping[str, Expected]) -> bool:
    # a tuple has the elements of what it is made of
    if read.name not in made or name not in made:
        return "call" in read.op
    return _alike(_sorted(made[read.name].exact), _sorted(made[name].exact))


class _Values:
    """Tensors by their elements, in any order and shape."""

    def __init__(self, received: Iterable[Expected]) -> None:
        self._of_size: dict[int, list[torch.Tensor]] = {}
        for one in received:
            self._of_size.setdefault(one.exact.numel(), []).append(_sorted(one.exact))

    def has(self, one: Expected) -> bool:
        own = _sorted(one.exact)
        return any(_alike(own, other) for other in self._of_size.get(one.exact.numel(), ()))


def _sorted(exact: torch.Tensor) -> torch.Tensor:
    parts = torch.view_as_real(exact) if exact.is_complex() else exact
    return parts.to(torch.float64).flatten().sort().values


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    # sorted; elements that are almost 0 are not compared: all of their digits may be rounding
    if one.numel() != other.numel():
        return False
    sizes = one.abs()
    some = sizes[sizes.isfinite() & (sizes > 0)]
    usual = some.kthvalue(1 + len(some) // 10).values if len(some) else 0.0  # fills of a mask are larger
    same = (one == other) | (one.isnan() & other.isnan()) | ((one - other).abs() <= _APART * sizes)
    return bool((same | (torch.maximum(sizes, other.abs()) <= _NEGLIGIBLE * usual)).all())
