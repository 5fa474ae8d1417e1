"""A step of training on the host whose operators repeat."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def training_step() -> Callable[[], None]:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16)) for _ in range(3)])
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    x = torch.randn(8, 16)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step
