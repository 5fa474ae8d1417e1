"""pytorch#193876: compiling a cumsum of a constant anew, with another constant, raises in a graph pass.

Wrong: the compile fails with `TypeError: unsupported operand type(s) for *: 'FakeTensor' and 'Node'`.
Culprit: the post-grad pass `pointless_cumsum_replacement`, given a fill value that Dynamo has made symbolic
in the second compile. The graph break in the loop compiles `cumulated` by itself, twice; once it is right.
Reproduces with torch 2.13.0 on the CPU (C++) and on the virtual GPU.
"""

import torch

from tracing import Workload


def build(device: str) -> Workload:
    def cumulated(fill: int) -> torch.Tensor:
        return torch.full((2,), fill, dtype=torch.int64, device=device).cumsum(0).sum()

    def fn() -> list[torch.Tensor]:
        totals = []
        for fill in (1, 2):
            totals.append(cumulated(fill))
            torch._dynamo.graph_break()
        return totals

    return Workload(fn)
