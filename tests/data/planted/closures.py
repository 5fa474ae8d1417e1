"""Kernels made by a function: of equal text, with what they close over or are given as a constexpr.

A2 makes each kernel anew before its launch.

- factor [code]: code of step; launch 0. A constant that the kernel closes over.
- helper [code]: code of step; launch 1. A helper that the kernel closes over.
- inner [code]: code of step; launch 1. A constant that the helper closes over.
- given [code]: configuration of apply or code of apply; launch 2. Another function is given as a constexpr.
- body [code]: code of apply; launch 2. A function of the same name is given, of another body.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload


def scaling(factor: Any) -> Any:
    @triton.jit
    def step(in_ptr, out_ptr, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(in_ptr + at) * factor)

    return step


def mapping(helper: Any) -> Any:
    @triton.jit
    def step(in_ptr, out_ptr, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, helper(tl.load(in_ptr + at)))

    return step


def lifting(term: Any) -> Any:
    @triton.jit
    def lifted(x):
        return x + term

    return lifted


@triton.jit
def squared(x):
    return x * x


def lowering() -> Any:
    @triton.jit
    def squared(x):
        return x * x - 1

    return squared


@triton.jit
def halved(x):
    return x * 0.5


@triton.jit
def apply(in_ptr, out_ptr, OPERATION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, OPERATION(tl.load(in_ptr + at)))


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    scale = scaling(tl.constexpr(3 if fault == "factor" else 2))
    helper = halved if fault == "helper" else lifting(tl.constexpr(6 if fault == "inner" else 5))
    operation = {"given": halved, "body": lowering()}.get(fault, squared)

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        scaled, lifted, out = (torch.zeros_like(x) for _ in range(3))
        first = scaling(tl.constexpr(2)) if variant and fault == "none" else scale
        first[(4,)](x, scaled, BLOCK=16)
        mapping(helper)[(4,)](scaled, lifted, BLOCK=16)
        apply[(4,)](lifted, out, operation, BLOCK=16)
        return out

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
