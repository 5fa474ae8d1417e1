"""A function writes every result into one buffer, so its second result replaces the first.

Wrong: in eager and compiled the first result equals the second; with `double` in torch's operators it would
not.
Culprit: the user's `_OUT`, a buffer kept from call to call: the second launch of `double_into` overwrites a
result that is still needed (by the subtraction).
A program of its own, not an upstream thread. Eager and compiled agree. On the virtual GPU and on a GPU.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload

_OUT: dict[torch.Size, torch.Tensor] = {}


@triton.jit
def double_into(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) * 2, mask=inside)


def double(x: torch.Tensor) -> torch.Tensor:
    out = _OUT.setdefault(x.shape, torch.empty_like(x))
    double_into[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), 64)
    return out


def fn(x: torch.Tensor) -> torch.Tensor:
    once = double(x)
    thrice = double(x + 1)
    return thrice - once  # 2 everywhere; 0 with the fault


def build(device: str, size: int = 100) -> Workload:
    return Workload(fn, (torch.randn(size, device=device),))
