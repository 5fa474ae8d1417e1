"""pytorch#197829: rows are moved by one through a clone, and the copy reads what it has overwritten.

Wrong: the mutated input, and the output that is computed from it.
Culprit: two post-grad passes together. `remove_noop_ops` drops the clone, then the reinplacing pass
(`should_reinplace_scatter`) turns the scatter into `copy_(x[1:], x[:-1])`, whose source and target overlap.
Each pass is right without the other.
Fix: pytorch#198010 declines to reinplace a scatter whose source shares the storage of its target.
Reproduces with torch 2.13.0 on the CPU (C++; rows=16 suffices) and on the virtual GPU (rows=1024: one
program must read what another has written; there the blocks run one after the other, on a GPU they race).
"""

import torch

from tracing import Workload


def fn(x: torch.Tensor) -> torch.Tensor:
    x[1:] = x[:-1].clone()
    return x * 2


def build(device: str, rows: int = 1024) -> Workload:
    return Workload(fn, (torch.arange(4.0 * rows, device=device).reshape(rows, 4),))
