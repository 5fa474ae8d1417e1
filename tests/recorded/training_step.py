"""A step of training on the host whose operators repeat."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def training_step(width: int = 16) -> Callable[[], None]:
    """width -- of each of three layers; half as many rows are trained on"""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width)) for _ in range(3)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    x = torch.randn(width // 2, width)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step
