"""A matrix product whose compiled form may round its factors; torch's eager has another implementation."""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def dot(a_ptr, b_ptr, c_ptr, PRECISION: tl.constexpr, SIZE: tl.constexpr):
    rows, columns = tl.arange(0, SIZE)[:, None] * SIZE, tl.arange(0, SIZE)[None, :]
    product = tl.dot(
        tl.load(a_ptr + rows + columns), tl.load(b_ptr + rows + columns), input_precision=PRECISION
    )
    tl.store(c_ptr + rows + columns, product)


@triton.jit
def double(in_ptr, out_ptr, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * 2)


def build(device: str, precision: str = "ieee") -> Workload:
    def fn(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling():
            return (a @ b) * 2
        c, out = torch.empty_like(a), torch.empty_like(a)
        dot[(1,)](a, b, c, PRECISION=precision, SIZE=32)
        double[(32,)](c, out, SIZE=32)
        return out

    return Workload(fn, tuple(torch.rand(32, 32, device=device) for _ in range(2)))
