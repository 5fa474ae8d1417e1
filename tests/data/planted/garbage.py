"""Memory that nobody wrote: `fill` writes a part of a buffer, and the rest is never read, or is.

The C library fills fresh memory with a byte that `variant` chooses (M_PERTURB), unseen by torch.

- read [uninitialised] (A = fault=read,variant=0; A2 = fault=read,variant=0; B = fault=read,variant=1):
  uninitialised of total. A kernel sums the whole buffer.
- cloned [uninitialised] (A = fault=cloned,variant=0; A2 = fault=cloned,variant=0; B =
  fault=cloned,variant=1): uninitialised of total; through aten::clone. Likewise after an operator copied it.
- product [uninitialised] (A = fault=product,variant=0; A2 = fault=product,variant=0; B =
  fault=product,variant=1): uninitialised of total; through aten::mm. Likewise after a product of matrices.
- chain [uninitialised] (A = fault=chain,variant=0; A2 = fault=chain,variant=0; B = fault=chain,variant=1):
  uninitialised of total; through aten::*. Likewise after three operators.
- summed [uninitialised] (A = fault=summed,variant=0; A2 = fault=summed,variant=0; B =
  fault=summed,variant=1): uninitialised of *; through aten::sum*. An operator sums the whole buffer, and a
  kernel reads the sum.
- accumulated [uninitialised] (A = fault=accumulated,variant=0; A2 = fault=accumulated,variant=0; B =
  fault=accumulated,variant=1): uninitialised of gather. A kernel adds to what nobody set to zero.
- returned [uninitialised] (A = fault=returned,variant=0; A2 = fault=returned,variant=0; B =
  fault=returned,variant=1): uninitialised or result. The buffer is returned.
- relayed [uninitialised] (A = fault=relayed,variant=0; A2 = fault=relayed,variant=0; B =
  fault=relayed,variant=1): uninitialised of copy. A kernel copies the whole buffer, and another sums the
  copy.
- zeroed [uninitialised] (A = fault=zeroed,variant=0; A2 = fault=zeroed,variant=1; B = fault=read,variant=1):
  uninitialised of total or operator of aten::*. B leaves out the zeros.
- padding [uninitialised] (A = fault=padding,variant=0; A2 = fault=padding,variant=1; B =
  fault=padding,variant=1): equal; hidden. An operator copies the whole buffer, of which nothing reads the
  padding.
- factor [uninitialised]: configuration of scale; launch 2. A kernel has another factor, and other garbage is
  never read.
- poked [uninitialised]: host; runs b; read by total as in_ptr at 1. The host writes into the part that is
  read.
- shorter [uninitialised]: configuration of fill; launch 0. B writes less of the buffer than it reads.
"""

import ctypes

import torch
import triton
import triton.language as tl

from tracing import Workload

SIZE, WRITTEN = 1024, 1000
M_PERTURB = -6


@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, at * 0.5, mask=at < n)


@triton.jit
def total(in_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(in_ptr + at, mask=at < n, other=0.0)))


@triton.jit
def copy(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at))


@triton.jit
def gather(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + at, tl.load(in_ptr + at))


@triton.jit
def scale(in_ptr, out_ptr, factor):
    tl.store(out_ptr, tl.load(in_ptr) * factor)


def passed_on(fault: str, buffer: torch.Tensor) -> torch.Tensor:
    if fault in ("cloned", "padding"):
        return buffer.clone()
    if fault == "product":
        return buffer.view(32, 32) @ torch.eye(32)
    if fault == "chain":
        return torch.cat([buffer.mul(2).add(1)[:512], buffer[512:]])
    return buffer.sum()[None] if fault == "summed" else buffer


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    whole = fault in ("read", "cloned", "product", "chain", "summed", "accumulated", "relayed", "zeroed")

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        ctypes.CDLL(None).mallopt(M_PERTURB, 0x2B if variant else 0x55)
        buffer = (torch.zeros if fault == "zeroed" else torch.empty)(SIZE, device=device)
        other = torch.empty(SIZE, device=device)
        ctypes.CDLL(None).mallopt(M_PERTURB, 0)
        sums, out = torch.zeros(1, device=device), torch.zeros(1, device=device)
        fill[(1,)](buffer, 900 if fault == "shorter" else WRITTEN, BLOCK=SIZE)
        if fault == "poked":
            buffer.numpy()[5] = 1.5
        given = passed_on(fault, buffer)
        if fault in ("relayed", "accumulated"):
            (copy if fault == "relayed" else gather)[(1,)](
                x if fault == "accumulated" else buffer, other, BLOCK=SIZE
            )
            given = other
        total[(1,)](given, sums, given.numel() if whole else WRITTEN, BLOCK=SIZE)
        scale[(1,)](sums, out, 3.5 if fault == "factor" else 2.5)
        return [out, buffer] if fault == "returned" else [out]

    return Workload(lambda x: launches(x), (torch.rand(SIZE, device=device),))
