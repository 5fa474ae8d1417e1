"""SiLU with a gate, sigmoid(x) * x * up: one fused pointwise kernel."""

import torch

from tracing import Workload


class SiluModel(torch.nn.Module):
    def forward(self, x: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x) * x * up


def build(device: str) -> Workload:
    x, up = (torch.rand((32, 1, 896), dtype=torch.float32, device=device) for _ in range(2))
    return Workload(SiluModel().to(device).eval(), (x, up))
