"""Capture Dynamo's graphs of a case, with the value of every node in eager."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from tracing.analyze.minify.graph_edit import GraphNode
from tracing.minify.kernel_call import with_kernel_calls
from tracing.minify.recorded_values import RecordedValues, StoredTensor, ValueRecorder, is_data
from tracing.program.experiment import Experiment

_ARGUMENTS = ("mode", "options", "backend")  # arguments of torch.compile that hold for each graph


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """A graph of Dynamo: functional calls, and parameters as inputs."""

    module: GraphModule
    values: RecordedValues
    asks_gradients: bool  # the case does, by Workload.backward
    dynamic: bool  # sizes are inputs
    compiling: Mapping[str, Any]  # the case's mode, options and backend, as arguments of torch.compile

    @property
    def backward(self) -> bool:
        """True if gradients are results: the case asks for them, or it ran a backward through this graph."""
        return self.asks_gradients or bool(self.values.gradients)

    @property
    def calls(self) -> list[Node]:
        """The nodes that call something, in order."""
        return [node for node in self.module.graph.nodes if node.op.startswith("call_")]

    @property
    def returned(self) -> list[Node]:
        """The nodes that the graph returns and that call something, in order."""
        last = next(iter(reversed(self.module.graph.nodes)))
        return [node for node in last.all_input_nodes if node.op.startswith("call_")]

    def inputs(self) -> list[StoredTensor]:
        """The tensors among its inputs."""
        given = [self.values.of[node.name] for node in self.module.graph.nodes if node.op == "placeholder"]
        return [one for one in given if isinstance(one, StoredTensor)]

    def nodes(self) -> list[GraphNode]:
        """The facts about nodes that a search needs."""
        return [self._node(node) for node in self.calls]

    def _node(self, node: Node) -> GraphNode:
        reads = tuple(one.name for one in node.all_input_nodes if one.op.startswith("call_"))
        value = self.values.of.get(node.name)
        data, source = is_data(value), node.args[0] if node.args else None
        part = source.name if _is_part(node) and isinstance(source, Node) and source.name in reads else ""
        return GraphNode(node.name, reads, not data, data and value is None, part)


def captured_graphs(experiment: Experiment) -> list[CapturedGraph]:
    """Run a case with its graphs executed in eager, and return the executed ones, in order.

    Memory: the values of all nodes. Raises what the case raises in eager.
    """
    graphs: list[CapturedGraph] = []
    workload = experiment.workload()
    compiling = {name: workload.compiling[name] for name in _ARGUMENTS if name in workload.compiling}

    def backend(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        module = with_kernel_calls(graph)
        dynamic = any(isinstance(one, torch.SymInt) for one in inputs)
        recorded: list[CapturedGraph] = []

        def run(*given: Any) -> Any:
            if recorded:
                return module(*given)
            recorder = ValueRecorder(module)
            result = recorder.run(*given)
            recorded.append(CapturedGraph(module, recorder.values, workload.backward, dynamic, compiling))
            graphs.extend(recorded)
            return result

        return run

    experiment.results(workload.with_backend(backend), torch.compile)
    return graphs


def _is_part(node: Node) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem"
