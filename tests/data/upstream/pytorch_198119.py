"""pytorch#198119: gradients of avg_pool2d with ceil_mode are wrong where the last window overhangs the edge.

Wrong: the gradient of the input, in the last rows and columns; the output is right.
Culprit: the lowering of `aten.avg_pool2d_backward`, which divides by the whole kernel size (9) where eager
divides by the part of the window that lies in the input.
No fix is merged as of the thread.
Reproduces with torch 2.13.0 on the CPU (C++) and on the virtual GPU.
"""

import torch
import torch.nn.functional as functional

from tracing import Workload


def build(device: str, size: int = 8) -> Workload:
    x = torch.randn(1, 2, size, size, device=device, requires_grad=True)
    return Workload(lambda x: functional.avg_pool2d(x, 3, 2, ceil_mode=True), (x,), backward=True)
