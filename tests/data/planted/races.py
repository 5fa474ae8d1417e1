"""Programs of one launch that come in another order, as a GPU may run them.

A2 reverses them where no result depends on it. `permuted` stands for the GPU: nothing else differs.

- atomic [race]: kernel of racing_sum; launch 1. Floats are added to one total.
- overlapping [race]: kernel of overlapping; launch 2. All programs store to the same element.
- stale [race]: kernel of neighbour; launch 3. Each program reads what another one writes.
- exchange [race]: kernel of ticket; launch 4. Each program takes a number from a counter.
- disjoint [race]: equal; hidden. Each program has elements of its own.
- integers [race]: equal; hidden. Integers are added to one total.
- factor [race]: configuration of disjoint; launch 0. A scalar differs.
"""

import contextlib

import torch
import triton
import triton.language as tl

from tracing import Workload
from tracing.interpreter import permuted

LAUNCHES = ["disjoint", "atomic", "overlapping", "stale", "exchange", "integers"]


@triton.jit
def disjoint(in_ptr, out_ptr, factor):
    program = tl.program_id(0)
    tl.store(out_ptr + program, tl.load(in_ptr + program) * factor)


@triton.jit
def racing_sum(in_ptr, total_ptr):
    tl.atomic_add(total_ptr, tl.load(in_ptr + tl.program_id(0)))


@triton.jit
def overlapping(in_ptr, out_ptr):
    tl.store(out_ptr, tl.load(in_ptr + tl.program_id(0)))


@triton.jit
def neighbour(ptr):
    program = tl.program_id(0)
    tl.store(ptr + program + 1, tl.load(ptr + program) + 1)


@triton.jit
def ticket(counter_ptr, out_ptr):
    tl.store(out_ptr + tl.program_id(0), tl.atomic_add(counter_ptr, 1))


@triton.jit
def scale(in_ptr, out_ptr):
    tl.store(out_ptr, tl.load(in_ptr) * 2)


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        scaled, line = torch.zeros_like(x), torch.zeros(65, device=device)
        total, last, out = (torch.zeros(1, device=device) for _ in range(3))
        counter, whole = (torch.zeros(1, dtype=torch.int32, device=device) for _ in range(2))
        tickets = torch.zeros(64, dtype=torch.int32, device=device)
        steps = [
            lambda: disjoint[(64,)](x, scaled, 3.5 if fault == "factor" else 2.5),
            lambda: racing_sum[(64,)](scaled, total),
            lambda: overlapping[(64,)](scaled, last),
            lambda: neighbour[(64,)](line),
            lambda: ticket[(64,)](counter, tickets),
            lambda: racing_sum[(64,)](tickets.sort().values, whole),
        ]
        for name, step in zip(LAUNCHES, steps, strict=True):
            harmless = variant and name in ("disjoint", "integers")
            with permuted(7) if harmless or name == fault else contextlib.nullcontext():
                step()
        scale[(1,)](total.sqrt() + 1, out)
        return [total, last, line, tickets, whole, out]

    x = torch.rand(64, device=device) * 10.0 ** (torch.arange(64, device=device) % 7)
    return Workload(lambda x: launches(x), (x,))
