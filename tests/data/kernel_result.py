"""A kernel of the program reads what Inductor computes in 32 bits, among nodes that do not matter.

`tuned=true` gives the kernel two configurations.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload

FACTOR = tl.constexpr(3)


@triton.jit
def times(x):
    return x * FACTOR


@triton.jit(do_not_specialize=["n"])
def scaled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, times(tl.load(x_ptr + offsets, mask=inside)), mask=inside)


tuned_scaled = triton.autotune(
    [triton.Config({"BLOCK": 8}, num_warps=1, maxnreg=64), triton.Config({"BLOCK": 16}, num_warps=2)],
    key=["n"],
    reset_to_zero=["out_ptr"],
)(scaled)


def fn(x: torch.Tensor, tuned: bool) -> torch.Tensor:
    for step in range(5):
        x = x + step
    index = torch.arange(0, 11, dtype=torch.int64, device=x.device) * 1_000_000_000
    out = torch.empty_like(index)
    if tuned:
        tuned_scaled[lambda chosen: (triton.cdiv(11, chosen["BLOCK"]),)](index, out, 11)
    else:
        scaled[(1,)](index, out, 11, BLOCK=16)
    return out + x


def build(device: str, tuned: bool = False) -> Workload:
    return Workload(fn, (torch.ones(11, dtype=torch.int64, device=device), tuned))
