"""A case whose sizes are symbols."""

import torch

from tracing import Workload


def build(device: str) -> Workload:
    return Workload(lambda x: x.softmax(-1), (torch.randn(37, 24, device=device),), dynamic=True)
