"""pytorch#198033: an in-place foreach operator reads its target at other positions while it writes it.

Wrong: the output and the mutated input, in the rows that are read after they were written.
Culprit: the lowering `register_foreach_inplace` of `_foreach_add_`: it gives the result the memory of the
target (`mutate_to(…, unsafe_alias=True)`), also where the result reads the target at other positions.
`x.add_(x.flip(0))` is right.
Fix: pytorch#198242 (open as of the thread) realizes such a result in memory of its own.
Reproduces with torch 2.13.0 on the virtual GPU, where the kernel's programs run one after the other and there
are two of them for each row; according to the thread at every size on the CPU (C++), and from 1024 x 1024 on
a GPU, where it is a race.
"""

import torch

from tracing import Workload


def fn(x: torch.Tensor) -> torch.Tensor:
    torch._foreach_add_([x], [x.flip(0)])
    return x


def build(device: str, rows: int = 16, width: int = 512) -> Workload:
    return Workload(fn, (torch.rand(rows, width, device=device),))
