"""A chain: kernel, mm, add, kernel.

A2 adds in another order, which gives the same bits.

- factor [operator]: configuration of scale; launch 0. The first kernel has another factor.
- code [operator]: code of scale; launch 0. The first kernel has another constant.
- inserted [operator]: operator of aten::mul_*; runs b; read by shift as in_ptr at 1. Only B multiplies
  between mm and add.
- dropped [operator]: operator of aten::add*; runs a; read by shift as in_ptr at 1. Only A adds.
- other [operator]: operator of aten::sub* or operator of aten::add*; read by shift as in_ptr at 1. A adds, B
  subtracts.
- alpha [operator]: operator of aten::add* or undecided; read by shift as in_ptr at 1. Both add, with another
  alpha.
- transposed [operator]: operator of aten::mm* or operator of aten::t* or undecided; read by shift as in_ptr
  at 1. The product is with the transposed matrix.
- poked [operator]: host or undecided; read by shift as in_ptr at 1. The host writes between mm and add.
- weights [operator]: start or undecided. The matrix is another one from the
  start.
- long [operator]: operator of aten::sin* or operator of aten::cos* or undecided; read by shift as in_ptr at
  1. The sixth of twelve operators is another one.
- joined [operator]: operator of aten::stack* or operator of aten::cat* or undecided; read by shift as in_ptr
  at 1. Two tensors are joined in another order.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload


def scaling(term: float) -> Any:
    TERM = tl.constexpr(term)

    @triton.jit
    def scale(in_ptr, out_ptr, factor, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(in_ptr + at) * factor + TERM)

    return scale


@triton.jit
def shift(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) + 1)


def chain(fault: str, variant: int, scaled: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    y = scaled @ (matrix.t() if fault == "transposed" else matrix)
    if fault == "inserted":
        y.mul_(2)
    if fault == "poked":
        y.numpy()[0, 3] = 0.5
    if fault == "other":
        y = y - scaled
    elif fault == "alpha":
        y = torch.add(y, scaled, alpha=2)
    elif fault != "dropped":
        y = scaled + y if variant else y + scaled
    for number in range(6):
        y = torch.sin(y) if fault == "long" and number == 3 else torch.cos(y)
        y = y * 2
    halves = [y[:4], y[4:]]
    return torch.cat(halves[::-1] if fault == "joined" else halves)


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    scale = scaling(1.5 if fault == "code" else 0.5)
    x, matrix = (torch.rand(8, 8, device=device) for _ in range(2))
    if fault == "weights":
        matrix = torch.rand(8, 8, device=device)

    @torch.compiler.disable
    def launches(x: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        scaled, out = torch.zeros_like(x), torch.zeros_like(x)
        scale[(4,)](x, scaled, 3.5 if fault == "factor" else 2.5, BLOCK=16)
        shift[(4,)](chain(fault, variant, scaled, matrix), out, BLOCK=16)
        return out

    return Workload(lambda x, matrix: launches(x, matrix), (x, matrix))
