"""Five kernels in a row, twice; an option makes chosen launches of them compute something else."""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def spread(in_ptr, out_ptr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * 3 + STEP)


@triton.jit
def shift(in_ptr, out_ptr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) + STEP)


@triton.jit
def squared(x):
    return x * x


@triton.jit
def square(in_ptr, out_ptr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, squared(tl.load(in_ptr + at)) * STEP)


@triton.jit
def shrink(in_ptr, out_ptr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * (STEP / 32))


@triton.jit
def lower(in_ptr, out_ptr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) - STEP)


KERNELS = (spread, shift, square, shrink, lower)


def build(device: str, wrong: str = "", warps: int = 4, block: int = 16, direct: bool = True) -> Workload:
    """wrong -- launches, "shift0+square1" the first of shift and the second of square"""
    chosen = wrong.split("+")

    def fn(x: torch.Tensor) -> torch.Tensor:
        for turn in range(2):
            for kernel in KERNELS:
                out = torch.empty_like(x)
                step = 2 if f"{kernel.__name__}{turn}" in chosen else 1
                kernel[(x.numel() // block,)](x, out, STEP=step, BLOCK=block, num_warps=warps)
                x = out
        return x

    def outside(x: torch.Tensor) -> torch.Tensor:
        return torch.compiler.disable(fn)(x)  # its kernels are launched by Triton, not by Inductor

    return Workload(outside if direct else fn, (torch.arange(32, dtype=torch.float32, device=device),))
