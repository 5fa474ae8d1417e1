"""Slices of one pool. In B a neighbour lies where A has a gap, and a kernel goes past its slice.

A2 has wider gaps. Both runs hold the same fault: with a gap it does no harm.

- store [bounds]: out of bounds of fill; launch 0; argument out_ptr. The kernel writes 16 elements past its
  slice.
- before [bounds]: out of bounds of lead; launch 1; argument out_ptr. The kernel writes 4 elements before its
  slice.
- load [bounds]: out of bounds of total; argument in_ptr. The kernel sums 16 elements past its slice.
- indexed [bounds]: out of bounds of scatter; launch 5; argument out_ptr. An index points past the slice.
- value [bounds]: out of bounds of total or kernel of total; argument in_ptr. What lies past the slice of the
  reader is filled with another number by an operator.
- mask [bounds]: code of trim or out of bounds of trim; launch 7. The kernel lost its mask.
- atomic [bounds]: out of bounds of count; launch 6; argument out_ptr. An atomic goes past the slice.
- unharmed [bounds]: equal; hidden. The neighbour is overwritten before it is read.
- factor [bounds]: configuration of scale; launch 2. A kernel's scalar differs; the gaps are as in A2.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def fill(out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, at * 0.5)


def trimming(masked: bool) -> Any:
    MASKED = tl.constexpr(masked)

    @triton.jit
    def trim(out_ptr, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at, at * 0.75, mask=at < n if MASKED else at < BLOCK)

    return trim


@triton.jit
def lead(out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK) - 4
    tl.store(out_ptr + at, at * 0.25)


@triton.jit
def scale(in_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * factor)


@triton.jit
def total(in_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(in_ptr + tl.arange(0, BLOCK))))


@triton.jit
def scatter(index_ptr, out_ptr, BLOCK: tl.constexpr):
    index = tl.load(index_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + index, index * 1.5)


@triton.jit
def count(index_ptr, out_ptr, BLOCK: tl.constexpr):
    index = tl.load(index_ptr + tl.arange(0, BLOCK))
    tl.atomic_add(out_ptr + index, index * 0 + 1.0)


NEAR = {  # the slice that has its neighbour next to it
    "store": "fill",
    "before": "lead",
    "load": "total",
    "indexed": "scatter",
    "atomic": "count",
    "unharmed": "fill",
}


class Pool:
    """Slices of one tensor with gaps of zeros."""

    def __init__(self, x: torch.Tensor, gap: int) -> None:
        self.memory, self.used, self.gap = x.new_zeros(4096), 64, gap

    def slice(self, n: int, gap: bool = True) -> torch.Tensor:
        part = self.memory[self.used : self.used + n]
        self.used += n + (self.gap if gap else 0)
        return part


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    trim, near = trimming(fault != "mask"), NEAR.get(fault)
    index = torch.tensor([0, 3, 9, 18, 2, 1, 5, 7], dtype=torch.int64, device=device)

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        pool = Pool(x, 96 if variant else 64)
        filled, after = pool.slice(48, near != "fill"), pool.slice(16)
        ahead, led = pool.slice(16, near != "lead"), pool.slice(32)
        summed, behind = pool.slice(48, near != "total"), pool.slice(16)
        placed, second = pool.slice(16, near != "scatter"), pool.slice(16)
        counted, third = pool.slice(16, near != "count"), pool.slice(16)
        trimmed, fourth = pool.slice(48, False), pool.slice(16)
        for number, neighbour in enumerate((after, ahead, behind, second, third, fourth)):
            neighbour.fill_(number + 1.5)
        summed.fill_(2.5)
        if fault == "value":
            pool.memory.narrow(0, summed.storage_offset() + 48, 16).fill_(7.5)
        outs = [torch.zeros(16, device=device) for _ in range(8)]
        fill[(1,)](filled, BLOCK=64)
        lead[(1,)](led, BLOCK=16)
        if fault == "unharmed":
            after.fill_(1.5)
        scale[(1,)](filled[:16], outs[0], 3.5 if fault == "factor" else 2.5, BLOCK=16)
        scale[(1,)](led[:16], outs[1], 2.5, BLOCK=16)
        total[(1,)](summed, outs[2], BLOCK=64)
        scatter[(1,)](index, placed, BLOCK=8)
        count[(1,)](index, counted, BLOCK=8)
        trim[(1,)](trimmed, 48, BLOCK=64)
        for neighbour, out in zip((after, ahead, second, third, fourth), outs[3:], strict=True):
            scale[(1,)](neighbour, out, 1.5, BLOCK=16)
        return outs

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
