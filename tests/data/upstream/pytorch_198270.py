"""pytorch#198270: what reads a tensor at other positions is fused with the copy that overwrites the tensor.

Wrong: the output and the mutated input, in the rows that are read after they were written.
Culprit: Inductor's scheduler: the copy back into the input that `index_put_` made pending is fused with the
kernel of `x.add_(x.flip(0))`, which reads row 3 when row 3 was written. Each statement by itself is right.
Fix: pytorch#198325 (open as of the thread).
Reproduces with torch 2.13.0 on the virtual GPU, where the kernel's programs run one after the other and there
are two of them for each row; according to the thread at every size on the CPU (C++), and from 1024 x 1024 on
a GPU, where it is a race.
"""

import torch

from tracing import Workload


def fn(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    x.index_put_((rows,), x * 2)
    x.add_(x.flip(0))
    return x


def build(device: str, rows: int = 16, width: int = 512) -> Workload:
    return Workload(fn, (torch.rand(rows, width, device=device), torch.arange(rows, device=device)))
