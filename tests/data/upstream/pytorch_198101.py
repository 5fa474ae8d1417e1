"""pytorch#198101: what reads an input through a dtype view is computed after the input was overwritten.

Wrong: the output, where `x[:, 2:5] = 2` wrote; the mutated input is right.
Culprit: `GraphLowering.mark_buffer_mutated`, while the graph is lowered: it realizes the pending users of the
mutated buffer, not the users of buffers that alias it (the fallback `aten.view.dtype`). The FX node computed
too late is `mul`.
Fix: pytorch#198104 realizes consumers of aliasing buffers before a mutation of the aliased buffer.
Reproduces with torch 2.13.0 on the CPU (C++) and on the virtual GPU.
"""

import torch

from tracing import Workload


def fn(x: torch.Tensor) -> torch.Tensor:
    y = x.view(torch.int32) * 2
    y.sub_(-4)
    x[:, 2:5] = 2
    return y.view(torch.int64)


def build(device: str) -> Workload:
    return Workload(fn, (torch.arange(-12, 12, dtype=torch.int64, device=device).reshape(4, 6),))
