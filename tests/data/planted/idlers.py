"""Launches that only one run has, with effect and without.

`idle` writes a buffer that nothing reads; `again` writes what is there already.

- idle [missing]: equal or missing of idle; hidden. B has no launch that writes a buffer that nothing reads.
- surplus [missing]: equal or missing of idle; hidden. B has one such launch more.
- repeated [missing]: equal or missing of scale; hidden. B launches a kernel twice, which writes the same.
- idle_scalar [missing]: configuration of shift; launch 2; after missing of idle. B has no such launch, and a
  kernel after it another scalar.
- surplus_poke [missing]: host; read by shift as in_ptr at 4; after missing of idle. B has one more, and the
  host writes after it.
- missing [missing]: missing of scale; runs a. B lacks a launch whose result is read.
- extra [missing]: missing of double; runs b. B has a launch that changes what is read.
- last [missing]: missing of shift; runs a. B lacks the last launch.
- end [missing]: missing of double; runs b. B has a launch more at the end, which changes a result.
- first [missing]: missing of double; runs b. B has a launch more at the start, which changes the input.
- replaced [missing]: missing of * or code of *. Another kernel is launched instead of one.
- operator_later [missing]: operator of aten::add_*; runs b; after missing of idle. B lacks an idle launch,
  and has an operator more after it.
- two [missing]: missing of scale; runs a. B lacks two launches in a row.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * 2.5)


@triton.jit
def idle(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) + 9)


@triton.jit
def shift(in_ptr, out_ptr, term, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) + term)


@triton.jit
def double(ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(ptr + at, tl.load(ptr + at) * 2)


def between(fault: str, scaled: torch.Tensor, unread: torch.Tensor, run: Any) -> None:
    """What is launched, and done by others, between `scale` and `shift`."""
    if fault not in ("idle", "idle_scalar", "operator_later"):
        run(idle, scaled, unread)
    if fault in ("surplus", "surplus_poke"):
        run(idle, scaled, unread)
        run(idle, unread, unread.clone())
    if fault == "surplus_poke":
        scaled.numpy()[5] = 0.5
    if fault == "operator_later":
        scaled.add_(1)
    if fault == "extra":
        run(double, scaled)


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    def run(kernel: Any, *args: Any) -> None:
        kernel[(1,)](*args, BLOCK=32)

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        scaled, unread, out, end = (torch.zeros_like(x) for _ in range(4))
        if fault == "first":
            run(double, x)
        if fault not in ("missing", "two"):
            run(idle if fault == "replaced" else scale, x, scaled)
        if fault == "repeated":
            run(scale, x, scaled)
        if fault != "two":
            between(fault, scaled, unread, run)
        run(shift, scaled, out, 1.5 if fault == "idle_scalar" else 0.5)
        if fault != "last":
            run(shift, out, end, 0.25)
        if fault == "end":
            run(double, end)
        return [out, end]

    return Workload(lambda x: launches(x), (torch.rand(32, device=device),))
