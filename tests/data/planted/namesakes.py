"""Two kernels of one name in one program; the function that makes each of them differs.

A2 makes the second before the first.

- second [code]: code of step; launch 1. The second has another constant.
- first [code]: code of step; launch 0. The first has another constant.
- swapped [order]: order of step or code of step. The second is launched first, on the same buffers.
- repeated [code]: code of step; launch 1. The first is launched instead of the second.
- other [code]: code of step; launch 2. One more launch of the first is one of the second.
- scalar [configuration]: configuration of step; launch 1. The second has another argument.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload


def adding(term: float) -> Any:
    TERM = tl.constexpr(term)

    @triton.jit
    def step(in_ptr, out_ptr, weight, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(in_ptr + at) * weight + TERM)

    return step


def dividing(factor: float) -> Any:
    FACTOR = tl.constexpr(factor)

    @triton.jit
    def step(in_ptr, out_ptr, weight, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(in_ptr + at) / FACTOR + weight)

    return step


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    if variant:
        second = dividing(5 if fault == "second" else 4)
        first = adding(2 if fault == "first" else 1)
    else:
        first, second = adding(1), dividing(4)
    steps = [(first, 1.5), (second, 3.5 if fault == "scalar" else 2.5), (first, 0.5)]
    if fault == "swapped":
        steps[:2] = steps[1::-1]
    if fault == "repeated":
        steps[1] = (first, 2.5)
    if fault == "other":
        steps[2] = (second, 0.5)

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        for step, weight in steps:
            out = torch.zeros_like(x)
            step[(4,)](x, out, weight, BLOCK=16)
            x = out
        return x

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
