"""Memory that a freed tensor leaves to the next one.

A keeps the first tensor, so that the next has fresh memory, which the C library fills with a byte
(M_PERTURB). B frees it first, and so does A2, where the part that is not written is not read.

- stale [uninitialised] (A = fault=stale,variant=0; A2 = fault=stale,variant=0; B = fault=stale,variant=1):
  uninitialised of total. A kernel sums a whole buffer of which a part was written.
- padding [uninitialised] (A = fault=none,variant=0; A2 = fault=none,variant=1; B = fault=none,variant=1):
  equal; hidden. The part that is not written is not read.
- poked [writer]: host; runs b; read by total as in_ptr at 2. The host writes into the recycled memory.
- operator [operator]: operator of aten::add_*; runs b; read by total as in_ptr at 2. An operator writes into
  the recycled memory.
- tenant [writer]: configuration of fill; launch 0; hidden. The kernel that wrote the freed tensor has another
  scalar, of which nothing is left.
"""

import ctypes

import torch
import triton
import triton.language as tl

from tracing import Workload

SIZE, WRITTEN = 1024, 1000
M_PERTURB = -6


@triton.jit
def fill(out_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, at * factor, mask=at < n)


@triton.jit
def total(in_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(in_ptr + at, mask=at < n, other=0.0)))


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(1, device=device)
        tenant = torch.empty(SIZE, device=device)
        fill[(1,)](tenant, SIZE, 3.5 if fault == "tenant" else 2.5, BLOCK=SIZE)
        if variant:
            del tenant
        else:
            ctypes.CDLL(None).mallopt(M_PERTURB, 0xAA)  # fills with 0x55: numbers that no sum absorbs
        buffer = torch.empty(SIZE, device=device)
        ctypes.CDLL(None).mallopt(M_PERTURB, 0)
        fill[(1,)](buffer, WRITTEN, 0.5, BLOCK=SIZE)
        if fault == "poked":
            buffer.numpy()[5] = 1.5
        if fault == "operator":
            buffer[:16].add_(1)
        total[(1,)](buffer, out, SIZE if fault == "stale" else WRITTEN, BLOCK=SIZE)
        return out

    return Workload(lambda x: launches(x), (torch.rand(4, device=device),))
