"""pytorch#198081: torch.any of uint8 returns bool once compiled, and arithmetic on it promotes to int64.

Wrong: the dtype and the value of the output: uint8 44 in eager, int64 300 compiled.
Culprit: the lowering `reduce_any`, which casts to bool; eager, aot_eager and `torch.all` keep uint8.
No fix is merged as of the thread.
Reproduces with torch 2.13.0 on the CPU (C++) and on the virtual GPU.
"""

import torch

from tracing import Workload


def build(device: str) -> Workload:
    x = torch.tensor([[0, 3], [0, 0]], dtype=torch.uint8, device=device)
    return Workload(lambda x: torch.any(x) * 200 + 100, (x,))
