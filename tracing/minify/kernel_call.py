"""Replace the launches of user's Triton kernels in a captured graph by functions that launch them.

Dynamo's node names a kernel by a number of a table of this process. A function can be compiled once more, and
written as Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch.fx import Graph, GraphModule

from tracing.upstream.inductor.user_kernels import launched_kernel


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A launch, without its tensors."""

    kernel: Any  # a JITFunction, or an autotuner of one
    grid: tuple[int, ...] | str  # or the Python code of a function `grid` of the chosen configuration
    constants: Mapping[str, Any]


def with_kernel_calls(module: GraphModule) -> GraphModule:
    """A copy of a graph in which user's kernels are launched by functions of their tensors."""
    graph = Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    copy = GraphModule(module, graph)
    for node in graph.nodes:
        launched = launched_kernel(node)
        if launched is not None:
            kernel, grid, constants, tensors = launched
            node.target = _launcher(KernelCall(kernel, grid, constants))
            node.args, node.kwargs = (), tensors
    copy.recompile()
    return copy


def kernel_call(target: object) -> KernelCall | None:
    """The launch that a node's function makes; None: it launches nothing."""
    return getattr(target, "launch", None) if callable(target) else None


def kernel_name(call: KernelCall) -> str:
    """The name of the kernel's function."""
    kernel = call.kernel
    while not hasattr(kernel, "__name__") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return str(kernel.__name__)


def _grid(grid: tuple[int, ...] | str) -> Any:
    if not isinstance(grid, str):
        return grid
    names: dict[str, Any] = {}
    exec(grid, names)  # text that torch writes
    return names["grid"]


def _launcher(call: KernelCall) -> Callable[..., None]:
    kernel, constants, grid = call.kernel, dict(call.constants), _grid(call.grid)

    def launch(**tensors: Any) -> None:
        kernel[grid](**tensors, **constants)

    name = f"launch_{kernel_name(call)}"
    launch.__name__ = launch.__qualname__ = name
    launch.__module__ = "minified"
    launch.launch = call  # type: ignore[attr-defined]
    return launch
