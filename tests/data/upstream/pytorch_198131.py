"""pytorch#198131: a copy into an input receives values that a later in-place operation writes to its source.

Wrong: only `dst`, an argument that the function mutates; what it returns is right.
Culprit: the pass `remove_noop_ops`, among those of the joint graph. It replaces `aten.copy(dst, src)` by
`src`, although the write-back `copy_(src, add)` precedes the write-back of `dst`.
Fix: pytorch#198132 keeps the copy of an input that is mutated before the copy's user runs.
Reproduces with torch 2.13.0 on the CPU (C++) and on the virtual GPU.
"""

import torch

from tracing import Workload


def fn(dst: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    dst[0:, :] = src[0:, :]
    src.add_(1)
    return src


def build(device: str, rows: int = 3) -> Workload:
    src = torch.arange(4.0 * rows, device=device).view(rows, 4)
    return Workload(fn, (torch.zeros(rows, 4, device=device), src))
