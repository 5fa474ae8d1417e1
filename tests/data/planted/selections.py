"""Three kernels in a row, of which a run records some: `--launches` and `--kernel`.

What only one of two runs has recorded is not compared, and that is said.

- launches [selection] (B = fault=none,variant=0 --launches 0:2): in part. B has two launches of three.
- last [selection] (B = fault=none,variant=0 --launches 1:3): in part. B has the last two, which are A's last
  two.
- kernel [selection] (B = fault=none,variant=0 --kernel shift): in part. B has one kernel.
- disjoint [selection] (A = fault=none,variant=0 --launches 0:1; A2 = fault=none,variant=0 --launches 0:1; B =
  fault=none,variant=0 --launches 2:3): in part. No launch is in both.
- within [selection] (B = fault=shift,variant=0 --kernel shift): configuration of shift; launch 1. What both
  cover differs.
- before [selection] (B = fault=scale,variant=0 --kernel negate): unknown or undecided. The cause was not
  recorded.
- first [selection] (A = fault=none,variant=0 --launches 0:2; A2 = fault=none,variant=0 --launches 0:2; B =
  fault=scale,variant=0): configuration of scale; launch 0. A is the one recorded in part.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * factor)


@triton.jit
def shift(in_ptr, out_ptr, term, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) + term)


@triton.jit
def negate(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, -tl.load(in_ptr + at))


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        scaled, shifted, out = (torch.zeros_like(x) for _ in range(3))
        scale[(4,)](x, scaled, 3.5 if fault == "scale" else 2.5, BLOCK=16)
        shift[(4,)](scaled, shifted, 1.5 if fault == "shift" else 0.5, BLOCK=16)
        negate[(4,)](shifted, out, BLOCK=16)
        return out

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
