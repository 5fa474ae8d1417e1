"""pytorch#197434: pooling gives the index of the memory's order if the input's rows are not contiguous.

Wrong: the indices (output 1); the values (output 0) are right.
Culprit: the lowering of `max_pool3d_with_indices`: the offset within a window, which an argmax gives, is
decoded in row-major order, and `ComputedBuffer.simplify_and_reorder` swaps the dimensions of that argmax when
the stride of the height is less than that of the width.
Fix: pytorch#197596, which lays the input out anew.
Reproduces with torch 2.13.0 on the virtual GPU, with windows of more than 25 elements.
"""

import torch
import torch.nn.functional as functional

from tracing import Workload


def fn(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return functional.max_pool3d(x, 3, return_indices=True)


def build(device: str, size: int = 6) -> Workload:
    return Workload(fn, (torch.randn(1, 2, 3, size, size, device=device).transpose(3, 4),))
