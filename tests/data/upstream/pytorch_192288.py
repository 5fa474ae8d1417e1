"""pytorch#192288: the module that Inductor generates names a class that it does not import.

Wrong: the generated code raises `NameError: name 'Strides' is not defined`; eager works.
Culprit: Inductor's code for a user's kernel: a NamedTuple that is a tl.constexpr is written as its repr.
No fix is merged as of the thread.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from tracing import Workload


class Strides(NamedTuple):
    row: int
    column: int


@triton.jit
def copy_row(x_ptr, out_ptr, N: tl.constexpr, STRIDES: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    inside = offsets < N
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets * STRIDES.column, mask=inside), mask=inside)


def fn(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x[0])
    copy_row[(1,)](x, out, x.shape[1], Strides(*x.stride()), 16)
    return out


def build(device: str) -> Workload:
    return Workload(fn, (torch.randn(4, 10, device=device),))
