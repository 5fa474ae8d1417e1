"""Dropout draws other random numbers once it is compiled: nothing is wrong.

Right: outputs and gradients differ from eager's in half of the elements and are other numbers of one
distribution.
With `torch._inductor.config.fallback_random` they agree.
A program of its own, not an upstream thread. On the virtual GPU, on the CPU and on a GPU.
"""

import torch
import torch.nn.functional as functional

from tracing import Workload


def build(device: str, p: float = 0.5) -> Workload:
    x = torch.randn(32, 64, device=device, requires_grad=True)
    return Workload(lambda x: functional.dropout(x.sin(), p) * 2, (x,), backward=True)
