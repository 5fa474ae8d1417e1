"""Build the graph of an edit: the kept nodes, with recorded values as inputs instead of removed nodes.

An input has the value that its first kept reader read, after all earlier writes. Inputs that shared a storage
still share one, with its contents at the first read of any of them: a kept write through one of them is
visible through the others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_aggregate, map_arg

from tracing.analyze.minify.graph_edit import GraphEdit, Size
from tracing.minify.captured_graph import CapturedGraph
from tracing.minify.graph_input import GraphInputs, edited
from tracing.minify.recorded_values import StoredTensor
from tracing.upstream.torch.dispatch_modes import dispatch_disabled


@dataclass(frozen=True, slots=True)
class SmallGraph:
    """A standalone graph."""

    module: GraphModule
    inputs: GraphInputs
    backward: bool
    dynamic: bool
    returned: tuple[str, ...]  # kept nodes that it returns in the order of its results
    droppable: tuple[str, ...]  # those of them without which the graph still has a result
    gradients: Mapping[str, torch.Tensor] = field(default_factory=dict)  # recorded, of returned nodes
    compiling: Mapping[str, Any] = field(default_factory=dict)  # the case's mode, options and backend

    def compiled(self) -> Any:
        """The graph as torch.compile compiles it in its case."""
        return torch.compile(self.module, dynamic=self.dynamic or None, **self.compiling)

    @property
    def literal_options(self) -> dict[str, Any]:
        """Those of `compiling` that Python's text can spell."""
        return {name: value for name, value in self.compiling.items() if is_literal(value)}

    def arguments(self) -> list[Any]:
        """New inputs, in the order of the placeholders."""
        with dispatch_disabled():  # a mode that follows the graph begins with its inputs
            values: dict[str, Any] = {**self.inputs.numbers, **self.inputs.tensors()}
        return [values[node.name] for node in self.module.graph.nodes if node.op == "placeholder"]

    @property
    def nodes(self) -> int:
        """How many nodes it has, with placeholders and output."""
        return len(self.module.graph.nodes)


def small_graph(captured: CapturedGraph, edit: GraphEdit) -> SmallGraph:
    """The graph that an edit leaves."""
    return _Builder(captured, edit).built()


def is_literal(value: object) -> bool:
    """True if Python's text can spell a value."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


class _Builder:
    def __init__(self, captured: CapturedGraph, edit: GraphEdit) -> None:
        self._captured, self._edit = captured, edit
        self._kept = {node for node in captured.calls if node.name in set(edit.kept)}
        self._order = {node: number for number, node in enumerate(captured.module.graph.nodes)}
        self._graph = Graph()
        self._new: dict[Node, Node] = {}
        self._numbers: dict[str, Any] = {}
        self._contents: dict[int, torch.Tensor] = {}
        self._inputs: dict[StoredTensor, Node] = {}

    def built(self) -> SmallGraph:
        kept = sorted(self._kept, key=self._order.__getitem__)
        for node in kept:  # placeholders come first
            map_aggregate(self._given(node), partial(self._stored, self._order[node]))
            self._number_inputs(node)
        for node in kept:
            self._new[node] = self._copied(node)
        returned, droppable = self._returned(kept)
        self._graph.output(tuple(self._new[node] for node in returned))
        module = GraphModule(self._captured.module, self._graph)
        inputs = GraphInputs(
            {node.name: stored for stored, node in self._inputs.items()}, self._contents, self._numbers
        )
        gradients = self._captured.values.gradients
        names = tuple(node.name for node in returned)
        return SmallGraph(
            module,
            edited(inputs, self._edit),
            self._captured.backward,
            self._captured.dynamic,
            names,
            tuple(node.name for node in droppable),
            {name: gradients[name] for name in names if name in gradients},
            self._captured.compiling,
        )

    def _given(self, node: Node) -> list[Any]:
        # the recorded values that a node reads, in the order of its arguments
        of = self._captured.values.of
        return [of[one.name] for one in node.all_input_nodes if one not in self._kept and not _inner(one, of)]

    def _stored(self, order: int, stored: Any) -> Any:
        if isinstance(stored, StoredTensor) and stored not in self._inputs:
            content = self._captured.values.content(stored.storage, order)
            self._contents.setdefault(stored.storage, content)
            self._inputs[stored] = self._graph.placeholder(self._name(stored))
        return stored

    def _name(self, stored: StoredTensor) -> str:
        of = self._captured.values.of
        names = [name for name, value in of.items() if value == stored]
        return names[0] if names else f"part_{len(self._inputs)}"

    def _number_inputs(self, node: Node) -> None:
        # sizes that are inputs stay inputs
        for one in node.all_input_nodes:
            value = self._captured.values.of.get(one.name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if one.op == "placeholder" and number and one not in self._new:
                self._new[one] = self._graph.placeholder(one.name)
                self._numbers[self._new[one].name] = value

    def _copied(self, node: Node) -> Node:
        args = map_arg(self._literals(node.args), self._value)
        kwargs = map_arg(self._literals(node.kwargs), self._value)
        return self._graph.create_node(node.op, node.target, args, kwargs, node.name)

    def _value(self, node: Node) -> Any:
        if node in self._new:
            return self._new[node]
        of = self._captured.values.of
        if _inner(node, of):
            self._new[node] = self._graph.create_node("get_attr", node.target, (), {}, node.name)
            return self._new[node]
        return map_aggregate(
            of[node.name], lambda one: self._inputs[one] if isinstance(one, StoredTensor) else one
        )

    def _literals(self, args: Any) -> Any:
        sizes = [one for one in self._edit.sizes if one.literals]
        return map_aggregate(args, lambda one: _resized(one, sizes)) if sizes else args

    def _returned(self, kept: list[Node]) -> tuple[list[Node], list[Node]]:
        # results of the whole, and nodes that no kept node reads; the whole does not return nodes that only
        # have an effect, such as the result of x.add_(1), and one more result may hide a fault
        whole, of = set(self._captured.returned), self._captured.values.of
        effects = {node for node in self._captured.calls if not node.users}
        read = {one for node in kept if node not in effects for one in node.all_input_nodes}
        values = [node for node in kept if node not in effects and not _empty(of, node)]
        candidates = [node for node in values if node in whole or node not in read]
        returned = [node for node in candidates if node.name not in self._edit.dropped]
        needed = len(candidates) == 1 and not effects & set(kept)
        return returned, [] if needed else returned


def _inner(node: Node, of: Mapping[str, Any]) -> bool:
    # a module or another object that the graph holds
    return node.op == "get_attr" and not isinstance(of.get(node.name), StoredTensor)


def _empty(of: Mapping[str, Any], node: Node) -> bool:
    return not any(True for _ in _stored_tensors(of.get(node.name)))


def _stored_tensors(value: Any) -> Iterator[StoredTensor]:
    leaves: list[StoredTensor] = []
    map_aggregate(value, lambda one: leaves.append(one) if isinstance(one, StoredTensor) else None)
    return iter(leaves)


def _resized(value: Any, sizes: list[Size]) -> Any:
    for one in sizes:
        if isinstance(value, int) and not isinstance(value, bool) and value == one.size:
            value = one.smaller
    return value
