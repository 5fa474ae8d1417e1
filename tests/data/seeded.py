"""Two kernels around a matrix product: the second adds what depends on the seed."""

import torch
import torch._inductor.config

from tracing import Workload

torch._inductor.config.triton.autotune_pointwise = (
    False  # else another configuration may be a difference, too
)


def build(device: str) -> Workload:
    noise = torch.rand(32, 896, device=device)
    x = torch.arange(32 * 896.0, device=device).view(32, 896) / 28672
    w = torch.ones(896, 896, device=device) / 896

    def fn(x: torch.Tensor, w: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        return ((x * 2) @ w).relu() + noise

    return Workload(fn, (x, w, noise))
