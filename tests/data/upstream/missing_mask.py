"""A user's kernel loads and stores without a mask, and the size is no multiple of its block.

Wrong: the sum: the last program adds elements after the end of x (size=100, block 64: 28 of them).
Culprit: the kernel `block_sums`, its `tl.load` without a mask.
A program of its own, not an upstream thread. On the virtual GPU the access out of bounds is reported and
the case ends there; with --allow-out-of-bounds it continues, and on a GPU the output is wrong.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload

BLOCK = 64


@triton.jit
def block_sums(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.program_id(0), tl.sum(x))


def fn(x: torch.Tensor) -> torch.Tensor:
    x = x * 2
    blocks = triton.cdiv(x.numel(), BLOCK)
    out = torch.empty(blocks, device=x.device)
    block_sums[(blocks,)](x, out, BLOCK)
    return out.sum()


def build(device: str, size: int = 100) -> Workload:
    return Workload(fn, (torch.ones(size, device=device),))
