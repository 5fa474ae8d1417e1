"""A kernel that is given a tuple of two tensors and a number.

- operator [scalar]: operator of aten::add_*; runs b. An operator changes a tensor of the tuple.
- poked [scalar]: host; runs b. The host changes a tensor of the tuple, by its address.
- scalar [scalar]: configuration of blend; launch 2. The number differs.
- dtype [scalar]: configuration of blend; launch 2; hidden. A tensor of the tuple is float64.
- writer [scalar]: configuration of scale; launch 0. A kernel that writes a tensor of the tuple has another
  factor.
"""

import ctypes

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * factor)


@triton.jit
def blend(parts, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(parts[0] + at) + tl.load(parts[1] + at) * parts[2]
    tl.store(out_ptr + at, value.to(tl.float32))


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        left, right, out = (torch.zeros_like(x) for _ in range(3))
        scale[(1,)](x, left, 2.5 if fault == "writer" else 1.5, BLOCK=32)
        scale[(1,)](x, right, 4.5, BLOCK=32)
        if fault == "operator":
            right.add_(1)
        if fault == "poked":
            ctypes.memset(left.data_ptr() + 8, 1, 4)
        number = 0.75 if fault == "scalar" else 0.25
        blend[(1,)]((left.double() if fault == "dtype" else left, right, number), out, BLOCK=32)
        return out

    return Workload(lambda x: launches(x), (torch.rand(32, device=device),))
