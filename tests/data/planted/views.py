"""Views of one table: rows, columns, the transposed table, other dtypes, arguments that overlap.

A2 takes the views in another form.

- column [writer]: operator of aten::mul_*; runs b; read by sums as in_ptr at 1. An operator changes a column.
- diagonal [writer]: host; runs b; read by sums as in_ptr at 1. The host changes the diagonal, through numpy.
- integers [writer]: host; runs b; read by sums as in_ptr at 1. The host changes the bits of an element as
  int32.
- transposed [writer]: configuration of scatter; launch 0. The table is written transposed.
- overlap [writer]: host; runs b; read by smooth as in_ptr at 2. The host changes what two arguments share.
- shifted [writer]: configuration of smooth or result or undecided. Two arguments overlap in other elements.
- copied [operator]: operator of aten::copy_*; runs b; read by sums as in_ptr at 1. A row is copied over
  another.
- flipped [operator]: operator of aten::flip; runs b; read by sums as in_ptr at 1. The rows are in reverse
  order.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scatter(in_ptr, out_ptr, row, column, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    to = (at // 8) * row + (at % 8) * column
    tl.store(out_ptr + to, tl.load(in_ptr + at) * 2)


@triton.jit
def sums(in_ptr, out_ptr):
    row = tl.program_id(0)
    tl.store(out_ptr + row, tl.sum(tl.load(in_ptr + row * 8 + tl.arange(0, 8))))


@triton.jit
def smooth(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) + 1)


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        table, out = torch.zeros(8, 8, device=device), torch.zeros(8, device=device)
        line = table.view(64) if variant else torch.as_strided(table, (64,), (1,))
        target = table.t() if fault == "transposed" else table
        scatter[(1,)](x, target, *target.stride(), BLOCK=64)
        if fault == "column":
            table[:, 3].mul_(2)
        if fault == "diagonal":
            table.diagonal().numpy()[...] = 1
        if fault == "integers":
            table.view(torch.int32).numpy()[5, 5] ^= 1 << 20
        if fault == "copied":
            table[1].copy_(table[6])
        given = table.flip(0) if fault == "flipped" else table
        sums[(8,)](given[:] if variant else given, out)
        if fault == "overlap":
            line.numpy()[20] = 1
        start = 8 if fault == "shifted" else 16
        smooth[(1,)](line[:32], line[start : start + 32], BLOCK=32)
        return [table, out]

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
