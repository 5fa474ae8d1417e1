"""Launches without an autotuner; the program launches one of them otherwise.

A2 writes the same grid and the same options in another form.

- warps [configuration]: configuration of scale; launch 0; hidden. 8 warps, not 4.
- stages [configuration]: configuration of scale; launch 0; hidden. 2 stages, not 3.
- grid [configuration]: configuration of scale; launch 0. A program less.
- larger [configuration]: configuration of scale; launch 0; hidden. A program more, whose lanes are masked
  off.
- block [configuration]: configuration of scale; launch 0; hidden. Half the programs with twice the block.
- scalar [configuration]: configuration of shift; launch 1. Another scalar.
- flag [configuration]: configuration of shift; launch 1. Another bool as constexpr.
- dtype [configuration]: configuration of shift; launch 1; hidden. The input is float64.
- shape [configuration]: configuration of shift; launch 1; hidden. The input is passed as 8 by 8.
- stride [configuration]: configuration of minus; launch 2; hidden. The input is passed transposed.
- swapped [configuration]: configuration of minus or undecided; launch 2. Two arguments of one shape are
  swapped.
- absent [configuration]: configuration of minus; launch 2. None instead of a tensor.
- late [configuration]: configuration of scale; launch 3; hidden. 8 warps in the second launch of a kernel.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def shift(in_ptr, out_ptr, term, UP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(in_ptr + at).to(tl.float32)
    tl.store(out_ptr + at, value + term if UP else value - term)


@triton.jit
def minus(in_ptr, less_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(in_ptr + at)
    if less_ptr is not None:
        value -= tl.load(less_ptr + at)
    tl.store(out_ptr + at, value)


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    grid: Any = (lambda meta: (triton.cdiv(64, meta["BLOCK"]), 1, 1)) if variant else (4,)
    options: dict[str, int] = {"num_warps": 4, "num_stages": 3} if variant else {}
    first = options | {"warps": {"num_warps": 8}, "stages": {"num_stages": 2}}.get(fault, {})
    first_grid = {"grid": (3,), "larger": (5,)}.get(fault, grid)

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        scaled, shifted, less, out = (torch.zeros_like(x) for _ in range(4))
        scale[first_grid](x, scaled, 64, BLOCK=32 if fault == "block" else 16, **first)
        given = {"dtype": scaled.double(), "shape": scaled.view(8, 8)}.get(fault, scaled)
        shift[grid](
            given, shifted, 1.5 if fault == "scalar" else 0.5, UP=fault != "flag", BLOCK=16, **options
        )
        operands: list[Any] = [shifted.view(8, 8), x.view(8, 8)]
        if fault == "stride":
            operands[0] = operands[0].t()
        if fault == "swapped":
            operands.reverse()
        if fault == "absent":
            operands[1] = None
        minus[grid](*operands, less, BLOCK=16, **options)
        last = options | ({"num_warps": 8} if fault == "late" else {})
        scale[grid](less, out, 64, BLOCK=16, **last)
        return out

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
