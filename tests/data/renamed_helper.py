"""Inductor's copy of a kernel lacks a helper that the kernel calls by another name."""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def times(x):
    return x * 3


thrice = times


@triton.jit(do_not_specialize=["n"])
def scaled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, thrice(tl.load(x_ptr + offsets, mask=inside)), mask=inside)


def fn(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    out = torch.empty_like(y)
    scaled[(1,)](y, out, 11, BLOCK=16)
    return out.cos()


def build(device: str) -> Workload:
    return Workload(fn, (torch.ones(11, device=device),))
