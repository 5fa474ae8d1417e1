"""A user's kernel inside of a compiled function: Inductor compiles it, with the function that it calls."""

import torch
import triton
import triton.language as tl

from tracing import Workload

SCALE = tl.constexpr(0.5)


@triton.jit
def scaled(x):
    return x * SCALE


@triton.jit
def compiled_helper(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, scaled(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


def build(device: str) -> Workload:
    def fn(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        compiled_helper[(2,)](x, out, 100, BLOCK=64)
        return out + 1

    return Workload(fn, (torch.rand(100, device=device),))
