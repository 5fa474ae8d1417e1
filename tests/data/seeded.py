"""Two kernels around a matrix product: the second adds what depends on the seed."""

import torch

from tracing import Workload


def build(device: str) -> Workload:
    noise = torch.rand(64, 64, device=device)
    x = torch.arange(4096.0, device=device).view(64, 64) / 4096

    def fn(x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        return ((x * 2) @ x).relu() + noise

    return Workload(fn, (x, noise))
