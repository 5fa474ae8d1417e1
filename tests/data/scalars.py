"""A kernel that is given floats which JSON lacks."""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def clamp(in_ptr, out_ptr, low, high, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(in_ptr + offsets)
    x = tl.where(x < low, low, x)
    tl.store(out_ptr + offsets, tl.where(x > high, high, x))


def build(device: str, low: float = -float("inf"), high: float = float("inf")) -> Workload:
    def fn(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        clamp[(1,)](x, out, low, high, BLOCK=16)
        return out

    return Workload(torch.compiler.disable(fn), (torch.randn(16, device=device),))
