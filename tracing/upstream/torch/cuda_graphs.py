"""CUDA graphs: the test whether one is being captured, and the kernels of one."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tracing.upstream.contract import require

# () -> bool: True while the current stream is captured into a graph: nothing may wait for the device then.
# torch.cuda.is_current_stream_capturing() asks the same, but the virtual GPU answers it. A torch that was
# built for CPUs has no native function, and its public function returns False.
is_capturing: Callable[[], bool] = getattr(
    torch._C, "_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing
)


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
    require(callable(is_capturing), "a function that says whether a graph is captured")
    methods = ("capture_begin", "capture_end", "replay")
    require(all(name in vars(torch.cuda.CUDAGraph) for name in methods), "captures and replays in Python")
    if torch.cuda.is_available():
        require(is_capturing() is False, "False while no graph is captured")
