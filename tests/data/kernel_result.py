"""A kernel of the program reads what Inductor computes in 32 bits, among nodes that do not matter."""

import torch
import triton
import triton.language as tl

from tracing import Workload

FACTOR = tl.constexpr(3)


@triton.jit
def times(x):
    return x * FACTOR


@triton.jit
def scaled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, times(tl.load(x_ptr + offsets, mask=inside)), mask=inside)


def fn(x: torch.Tensor) -> torch.Tensor:
    for step in range(5):
        x = x + step
    index = torch.arange(0, 11, dtype=torch.int64, device=x.device) * 1_000_000_000
    out = torch.empty_like(index)
    scaled[(1,)](index, out, 11, BLOCK=16)
    return out + x


def build(device: str) -> Workload:
    return Workload(fn, (torch.ones(11, dtype=torch.int64, device=device),))
