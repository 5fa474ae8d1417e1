"""triton#11631: a pass asserts on a loop that replaces its accumulator by a negated sum.

Wrong: compiling the kernel ends in `oldUpdate->getNumOperands() == 2`.
Culprit: the pass `tritongpu-optimize-thread-locality`, which expects that two operands are combined.
Fix: triton#11637 leaves out what is not combined of two operands.
Reproduces with Triton 3.8.0, whose wheel has assertions, for sm_90, without a GPU.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def last_negated_sum(x, y, STEPS: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    left = tl.zeros((ROWS,), tl.float32)
    for step in tl.range(0, STEPS):
        block = tl.load(x + step * ROWS * WIDTH + row[:, None] * WIDTH + column[None, :])
        left = -tl.sum(block, axis=1)
    tl.store(y + row, left)


def fn(x: torch.Tensor) -> torch.Tensor:
    y = x.new_empty(x.shape[1])
    last_negated_sum[(1,)](x, y, *x.shape)
    return y


def build(device: str) -> Workload:
    return Workload(fn, (torch.randn(2, 16, 256, device=device),))
