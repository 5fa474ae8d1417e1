"""A case whose third run does not come to its end: `failing.py:how=interrupt` as if Ctrl-C were pressed."""

import torch

from tracing import Workload

builds = 0


def build(device: str, how: str = "raise") -> Workload:
    global builds
    builds += 1
    third = builds == 6  # each run builds for eager and for the compiled case

    @torch.compiler.disable
    def fn(x: torch.Tensor) -> torch.Tensor:
        if third and how == "interrupt":
            raise KeyboardInterrupt
        if third:
            raise RuntimeError("the third time")
        return x + 1

    return Workload(lambda x: fn(x), (torch.ones(4, device=device),))
