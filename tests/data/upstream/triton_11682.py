"""triton#11682: a pass asserts on, or miscompiles, a sum over a loop whose result is used twice.

Wrong: compiling the kernel ends in `loopResult.hasOneUse()`; without assertions the result is wrong.
Culprit: the pass `tritongpu-optimize-thread-locality`, which replaces one of the uses.
Fix: triton#11682 replaces all of them.
Reproduces with Triton 3.8.0, whose wheel has assertions, for sm_90, without a GPU.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def twice_the_sum(x, y, STEPS: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    total = tl.zeros((ROWS,), tl.float32)
    for step in tl.range(0, STEPS):
        block = tl.load(x + step * ROWS * WIDTH + row[:, None] * WIDTH + column[None, :])
        total += tl.sum(block, axis=1)
    tl.store(y + row, total + total)


def fn(x: torch.Tensor) -> torch.Tensor:
    y = x.new_empty(x.shape[1])
    twice_the_sum[(1,)](x, y, *x.shape)
    return y


def build(device: str) -> Workload:
    return Workload(fn, (torch.randn(2, 16, 256, device=device),))
