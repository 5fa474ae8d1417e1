"""pytorch#193751: argmax after a reduction of a channels_last tensor returns an index of the memory's order.

Wrong: the output, an integer.
Culprit: the lowering of `aten.argmax` (`_make_reduction_inner`): it trusts the tentative contiguous layout
of its unrealized input `mean` and reports the flat physical index instead of the logical one.
Fix: pytorch#195063 emits the logical index unless the input is a buffer whose layout is fixed.
Reproduces with torch 2.13.0 on the CPU (C++) and on the virtual GPU.
"""

import torch

from tracing import Workload


def build(device: str) -> Workload:
    x = torch.randn(4, 4, 8, 8, device=device).to(memory_format=torch.channels_last)
    return Workload(lambda x: torch.argmax(torch.mean(x, dim=-1)), (x,))
