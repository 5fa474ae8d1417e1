"""A kernel, an operator of torch and a kernel in a row; something outside of torch writes into their tensors.

`relayed.py:poked=before` writes into what the operator reads, `poked=after` into its result.
"""

import ctypes

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def double(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * 2)


def build(device: str, poked: str = "never") -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        first, out = torch.zeros_like(x), torch.zeros_like(x)
        double[(1,)](x, first, BLOCK=64)
        if poked == "before":
            ctypes.memset(first.data_ptr(), 1, 4)
        second = first.relu()
        if poked == "after":
            ctypes.memset(second.data_ptr(), 1, 4)
        double[(1,)](second, out, BLOCK=64)
        return out

    return Workload(lambda x: launches(x), (torch.ones(64, device=device),))
