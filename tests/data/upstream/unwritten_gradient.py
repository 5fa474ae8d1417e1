"""A user's backward kernel writes the gradient of whole blocks only, and the rest stays unwritten.

Wrong: the last `size % BLOCK` elements of the gradient of x; they are whatever the memory held. The output
is right.
Culprit: the kernel `double_backward`: its grid is size // BLOCK, not the quotient rounded up.
A program of its own, not an upstream thread. Wrong in eager and compiled alike, so comparing them finds
nothing where the allocator hands out equal memory. Reproduces on the virtual GPU and on a GPU.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload

BLOCK = 64


@triton.jit
def double_forward(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) * 2, mask=inside)


@triton.jit
def double_backward(grad_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(grad_ptr + offsets, mask=inside) * 2, mask=inside)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        double_forward[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        grad = grad.contiguous()
        out = torch.empty_like(grad)
        double_backward[(grad.numel() // BLOCK,)](grad, out, grad.numel(), BLOCK)
        return out


def build(device: str, size: int = 100) -> Workload:
    x = torch.randn(size, device=device, requires_grad=True)
    return Workload(lambda x: Double.apply(x.sin()), (x,), backward=True)
