"""Computes values of a recorded FX graph from other values of it.

Nodes are executed in graph order on clones of the given values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch

from tracing.judge.fx.fx_values import FxPlan, FxValue, FxValues, Given
from tracing.judge.fx.operators import executes_graphs, references, resolved
from tracing.judge.fx.recorded_values import clone, constant, decoded, strided
from tracing.judge.fx.saved_states import named_operator
from tracing.store.graph_file import FxGraph, FxNode
from tracing.upstream.torch.fused_attention import (
    GeneratorState,
    generator_at,
    generator_state,
    with_state_on_host,
)

_VIEW = "aten::view"
_CPU = torch.device("cpu")


class ExecutedNode(NamedTuple):
    """A node with the values of its positional arguments, and its result."""

    node: FxNode
    read: list[Any]
    result: Any


class FxProgram(FxValues):
    """A recorded FX graph that can be executed in parts."""

    def __init__(
        self, graph: FxGraph, device: torch.device = _CPU, tf32: Collection[str] = frozenset()
    ) -> None:
        """device -- where nodes create tensors, whatever device the graph names: that of the given values

        tf32 -- products that the recorded program may have computed in TF32, as `allowed_tf32`
        """
        super().__init__(graph, on_gpu=device.type == "cuda")
        self._device, self.tf32 = device, tf32

    def executing(self, plan: FxPlan, given: Given) -> Iterator[ExecutedNode]:
        """Execute a plan, and yield each executed node; later ones may change its values in place."""
        values = self._values(given)
        for name in plan.nodes:
            node = self.nodes[name]
            read = [self._arguments(one, values) for one in node.args]
            values.setdefault(self.tensor(name), result := self._executed(node, values))
            yield ExecutedNode(node, read, result)

    def _values(self, given: Given) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for value, content in given.items():
            own = clone(content) if isinstance(content, torch.Tensor) else content
            values[value.node] = strided(own, self.nodes[value.node].value)
        return values

    def run(
        self, plan: FxPlan, given: Given, change: Callable[[FxNode, Any], None] = lambda node, result: None
    ) -> dict[FxValue, Any]:
        """Execute a plan; returns clones of its target values.

        change -- receives each node with its result, and may change it in place
        """
        values = self._values(given)
        results: dict[FxValue, Any] = {}
        ends = {target: self._end(target) for target in plan.targets}
        for name in plan.nodes:
            result = self._executed(self.nodes[name], values)
            change(self.nodes[name], result)
            values.setdefault(self.tensor(name), result)
            for target, end in ends.items():
                if end == name:
                    results[target] = _kept(values[target.node])
        for target in plan.targets:
            if target not in results:  # the value is an input, or no node of the plan ends its lifetime
                results[target] = _kept(values[target.node])
        return results

    def _end(self, value: FxValue) -> str:
        # the node after which a value exists
        writers = self.writers.get(self.root(value.node), [])
        last = writers[value.writes - 1] if value.writes else value.node
        return max(last, value.node, key=self.order.__getitem__)

    def called(self, *arguments: Any) -> list[Any]:
        """The results of the whole graph for some inputs."""
        values: dict[str, Any] = dict(zip(self.inputs, arguments, strict=True))
        for node in self.graph.nodes:
            if node.op in ("get_attr", "call_function"):
                values.setdefault(self.tensor(node.name), self._executed(node, values))
        return [self._arguments(one, values) for one in self.outputs]

    def generator(self, node: FxNode, known: Mapping[str, Any]) -> GeneratorState | None:
        """From which a node draws on a GPU; None: that is not known.

        known -- values, by node
        """
        names = self.state(node, known)
        parts = [known[one] for one in names]
        if parts and isinstance(parts[0], GeneratorState):
            return parts[0]
        return generator_state(parts) if parts else None

    def _attribute(self, node: FxNode) -> Any:
        if node.graph is not None:
            return FxProgram(node.graph, self._device, self.tf32).called
        return constant(node.constant, self._device)

    def _argument(self, value: Any, values: Mapping[str, Any]) -> Any:
        if operator := named_operator(value):
            return resolved(FxNode("", "call_function", operator))
        return self._arguments(value, values)

    def _arguments(self, value: Any, values: Mapping[str, Any]) -> Any:
        names = {name: self.tensor(name) for name in references(value)}
        return decoded(value, {name: values[one] for name, one in names.items()}, self._device)

    def _executed(self, node: FxNode, values: Mapping[str, Any]) -> Any:
        if node.op == "get_attr":
            return self._attribute(node)
        if node.target == "_operator.getitem" and node.name in self._same:
            return values[self.tensor(node.name)]
        args = [self._argument(one, values) for one in node.args]
        keywords = (node.kwargs or {}).get("mapping", [])
        kwargs = {name: self._arguments(one, values) for name, one in keywords}
        if "device" in kwargs:  # also where the graph leaves it open: None
            kwargs["device"] = self._device
        state = self.generator(node, values)
        with generator_at(state, self._device) if state is not None else nullcontext():
            function = self._function(node)
            result = function(*with_state_on_host(function, args), **kwargs)
        return strided(result, node.value) if executes_graphs(node) else result

    def _function(self, node: FxNode) -> Callable[..., Any]:
        # attention that is taken apart lays its results out in another order, of which torch may have no view
        read_only = self.root(node.name) not in self.writers
        return torch.ops.aten.reshape.default if node.target == _VIEW and read_only else resolved(node)


def _kept(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value
