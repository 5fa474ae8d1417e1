"""A linear layer in float64 between others, with gradients: what `tracing check` reports."""

import torch

from tracing import Workload


def build(device: str) -> Workload:
    """Weights of 16 columns; only the middle layer is in float64."""
    x = torch.rand(8, 16, device=device)
    w = torch.rand(16, 16, device=device, requires_grad=True)

    def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        narrow = torch.relu(x @ w)
        wide = (narrow.double() * 2).float()
        return torch.tanh(wide @ w)

    return Workload(fn, (x, w), backward=True)
