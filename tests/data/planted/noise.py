"""Operators that give other results on equal inputs, and data that comes from outside of torch.

A2 draws a number more after the last launch.

- generator [operator]: operator of aten::* or undecided; read by shift as in_ptr at 0. A generator has
  another seed.
- drawn [operator]: operator of aten::* or undecided; read by shift as in_ptr at 0. B draws once more before.
- custom [operator]: operator of planted::measure or undecided; read by shift as in_ptr at 1. An operator of
  the program's own measures something else.
- inplace [operator]: operator of aten::* or undecided; read by shift as in_ptr at 2. A tensor is filled at
  random in place.
- array [operator]: host or start or operator of aten::* or undecided; read by shift as in_ptr at 3. An array
  of numpy has other numbers.
- list [operator]: host or start or operator of aten::* or undecided; read by shift as in_ptr at 4. A list of
  numbers has another number.
- chained [operator]: operator of aten::* or undecided; read by shift as in_ptr at 5. Operators pass other
  random numbers on.
"""

import numpy as np
import torch
import triton
import triton.language as tl

from tracing import Workload

measured = 1.0


@triton.jit
def shift(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) + 1)


@torch.library.custom_op("planted::measure", mutates_args=())
def measure(tensor: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(tensor.numpy() + np.float32(measured))


def seeded(fault: str, name: str) -> torch.Generator:
    return torch.Generator().manual_seed(7 if fault == name else 3)


def inputs(fault: str, x: torch.Tensor) -> list[torch.Tensor]:
    """What the launches read, in their order."""
    generator = seeded(fault, "generator")
    if fault == "drawn":
        torch.rand(1, generator=generator)
    drawn = torch.rand(64, generator=generator)
    measured_here = measure(x)
    filled = torch.zeros(64).normal_(generator=seeded(fault, "inplace"))
    array = torch.from_numpy(np.linspace(0, 2 if fault == "array" else 1, 64, dtype=np.float32))
    numbers = torch.tensor([0.5] * 32 + [0.25 if fault == "list" else 0.75] * 32)
    noise = torch.rand(64, generator=seeded(fault, "chained"))
    return [drawn, measured_here, filled, array, numbers, torch.relu(noise.mul(2).sub(1)).cumsum(0)]


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        global measured
        measured = 2.0 if fault == "custom" else 1.0
        outs = []
        for given in inputs(fault, x):
            out = torch.zeros_like(x)
            shift[(4,)](given, out, BLOCK=16)
            outs.append(out)
        if variant:
            torch.rand(1)
        return outs

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
