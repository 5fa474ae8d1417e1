"""Two kernels, of which Inductor generates one and compiles the other; options change either."""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at, mask=at < n) * FACTOR, mask=at < n)


def build(device: str, added: float = 1.0, factor: int = 3, block: int = 16) -> Workload:
    def fn(x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(x) + added
        out = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), FACTOR=factor, BLOCK=block)
        return out

    return Workload(fn, (torch.arange(-4.0, 36.0, device=device),))
