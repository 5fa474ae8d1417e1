"""ATen graphs of functions, and random ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from tracing.upstream.inductor.backend_compile import Part, aot_compiled


def aten_graphs(fn: Callable[..., Any], *args: Any, dynamic: bool | None = None) -> dict[Part, GraphModule]:
    """The ATen graphs of a function, by their part; it may have no graph break."""
    graphs: dict[Part, GraphModule] = {}

    def keep(graph: GraphModule, part: Part) -> Callable[..., Any]:
        assert part not in graphs
        graphs[part] = graph
        return lambda inputs: graph(*inputs)

    def backend(graph: GraphModule, inputs: Sequence[Any]) -> Any:
        return aot_compiled(graph, inputs, keep)

    torch.compiler.reset()
    torch.compile(fn, backend=backend, dynamic=dynamic, fullgraph=True)(*args)
    torch.compiler.reset()
    return graphs


def aten_graph(fn: Callable[..., Any], *args: Any, dynamic: bool | None = None) -> Graph:
    """The ATen graph of a function without gradients."""
    return aten_graphs(fn, *args, dynamic=dynamic)["inference"].graph


def node(graph: Graph, operator: str) -> Node:
    """The node of an operator, "aten.mm.default"."""
    (chosen,) = (one for one in graph.nodes if str(one.target) == operator)
    return chosen
