"""A kernel without a mask that sums up to the end of its block, past the elements that were written."""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, offsets.to(tl.float32), mask=offsets < n)


@triton.jit
def total(in_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(in_ptr + tl.arange(0, BLOCK)), axis=0))


def build(device: str) -> Workload:
    def fn(x: torch.Tensor) -> torch.Tensor:
        between, out = torch.empty(64, device=device), torch.empty(1, device=device)
        fill[(1,)](between, 40, BLOCK=64)
        total[(1,)](between, out, BLOCK=64)
        return x + out

    return Workload(torch.compiler.disable(fn), (torch.ones(4, device=device),))
