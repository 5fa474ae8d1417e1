"""CUDA graphs: the test whether one is being captured, and the kernels of one."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch

from tracing.upstream.contract import require, require_parameters

# () -> bool: True while the current stream is captured into a graph: nothing may wait for the device then.
# torch.cuda.is_current_stream_capturing() asks the same, but the virtual GPU answers it. A torch that was
# built for CPUs has no native function, and its public function returns False.
is_capturing: Callable[[], bool] = getattr(
    torch._C, "_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing
)


def has_graph_trees(device: int) -> bool:
    """True if Inductor captures graphs on a GPU: what this thread allocates may belong to one of them."""
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    if trees is None:
        return False
    try:
        return trees.get_manager(device, create_if_none_exists=False) is not None
    except (AssertionError, AttributeError):  # a thread without a manager of its own
        return True


def kernel_names(graph: torch.cuda.CUDAGraph) -> list[str]:
    """The names of the kernels of a graph, sorted; empty if torch cannot list them.

    torch 2.13 and later can, if the graph was made with keep_graph=True and cuda.bindings is installed.
    """
    try:
        nodes = graph.get_graph_data()["nodes"]
    except (AttributeError, RuntimeError, KeyError):
        return []
    return sorted({node["kernel_name"] for node in nodes if node.get("kernel_name")})


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    from torch._inductor import cudagraph_trees  # half a second

    require(callable(is_capturing), "a function that says whether a graph is captured")
    methods = ("capture_begin", "capture_end", "replay")
    require(all(name in vars(torch.cuda.CUDAGraph) for name in methods), "captures and replays in Python")
    require_parameters(cudagraph_trees.get_manager, "device_index", "create_if_none_exists")
    if torch.cuda.is_available():
        require(is_capturing() is False, "False while no graph is captured")
