"""A case that leaves traces in its module and in torch: in a second run of one process they would show.

unseeded -- its input comes from a generator that nobody seeds
"""

import random

import torch

from tracing import Workload

CALLS = [0]
KEPT = torch.zeros(4)


def build(device: str, unseeded: bool = False) -> Workload:
    @torch.compiler.disable
    def fn(x: torch.Tensor) -> torch.Tensor:
        CALLS[0] += 1
        KEPT.add_(1)
        torch.nn.functional.relu = torch.nn.functional.gelu
        return x * CALLS[0] + torch.nn.functional.relu(KEPT)

    x = torch.full((4,), random.random() if unseeded else 1.0, device=device)
    return Workload(lambda x: fn(x) + 1, (x,))
