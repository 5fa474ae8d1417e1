"""The MLP of a transformer's block: RMS norm, a gate, a residual. Fused kernels between matrix products."""

import torch

from tracing import Workload


class GatedMLP(torch.nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm = torch.nn.RMSNorm(width)
        self.gate = torch.nn.Linear(width, hidden, bias=False)
        self.up = torch.nn.Linear(width, hidden, bias=False)
        self.down = torch.nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + self.down(torch.sigmoid(self.gate(y)) * self.up(y))


def build(device: str, width: int = 64, hidden: int = 128) -> Workload:
    return Workload(GatedMLP(width, hidden).to(device), (torch.rand((8, width), device=device),))
