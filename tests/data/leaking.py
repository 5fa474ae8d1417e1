"""A case that changes its module and torch's state, which would show in a second run of one process.

unseeded -- its input comes from an unseeded generator
"""

import random

import torch

from tracing import Workload

CALLS = [0]
KEPT: list[torch.Tensor] = []


def build(device: str, unseeded: bool = False) -> Workload:
    if not KEPT:
        KEPT.append(torch.zeros(4, device=device))

    @torch.compiler.disable
    def fn(x: torch.Tensor) -> torch.Tensor:
        CALLS[0] += 1
        KEPT[0].add_(1)
        torch.nn.functional.relu = torch.nn.functional.gelu
        return x * CALLS[0] + torch.nn.functional.relu(KEPT[0])

    x = torch.full((4,), random.random() if unseeded else 1.0, device=device)
    return Workload(lambda x: fn(x) + 1, (x,))
