"""A selective state-space model in the manner of Mamba with random weights: a gate, a convolution, a scan.

The scan h[t] = a[t] * h[t-1] + b[t] doubles its reach in each of log2(tokens) steps, so that it is a few
fused kernels and no loop over tokens.

Options: small = true for 0.1 million parameters instead of 27; batch, tokens; backward.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tracing import Workload

STATE, REACH = 16, 4  # numbers that a channel remembers; tokens that the convolution sees


def scan(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """All h of h[t] = a[t] * h[t-1] + b[t] along dimension 1; h[-1] is 0."""
    distance = 1
    while distance < a.shape[1]:
        before = (0, 0, 0, 0, distance, 0)
        b = b + a * F.pad(b, before)[:, : b.shape[1]]
        a = a * F.pad(a, before, value=1.0)[:, : a.shape[1]]
        distance *= 2
    return b


class Mixer(nn.Module):
    """Mixes tokens; the decay of each channel depends on its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner, self.rank = 2 * width, max(1, width // 16)
        self.norm = nn.RMSNorm(width)
        self.into = nn.Linear(width, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, REACH, padding=REACH - 1, groups=inner)
        self.select = nn.Linear(inner, self.rank + 2 * STATE, bias=False)
        self.step = nn.Linear(self.rank, inner)
        self.log_decay = nn.Parameter(torch.arange(1.0, STATE + 1).log().repeat(inner, 1))
        self.direct = nn.Parameter(torch.ones(inner))
        self.out = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u, gate = self.into(self.norm(x)).chunk(2, -1)
        u = F.silu(self.conv(u.mT)[..., : u.shape[1]].mT)
        step, written, read = self.select(u).split([self.rank, STATE, STATE], -1)
        step = F.softplus(self.step(step)).unsqueeze(-1)
        decay = torch.exp(-self.log_decay.exp() * step)
        h = scan(decay, step * written.unsqueeze(2) * u.unsqueeze(-1))
        y = (h * read.unsqueeze(2)).sum(-1) + self.direct * u
        return x + self.out(y * F.silu(gate))


class StateSpaceModel(nn.Module):
    def __init__(self, words: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.Sequential(*(Mixer(width) for _ in range(layers)))
        self.norm = nn.RMSNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.norm(self.layers(self.embedding(tokens))) @ self.embedding.weight.T


def build(
    device: str, small: bool = False, batch: int = 1, tokens: int = 0, backward: bool = False
) -> Workload:
    words = 256 if small else 12_800
    model = StateSpaceModel(words, 64, 2) if small else StateSpaceModel(words, 512, 12)
    model = model.to(device).requires_grad_(backward)
    tokens = tokens or (16 if small else 64)
    return Workload(model, (torch.randint(words, (batch, tokens), device=device),), backward=backward)
