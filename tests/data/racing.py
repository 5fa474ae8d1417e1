"""Programs that add floats atomically into one element: the sum depends on the order of the additions."""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def racing_sum(in_ptr, out_ptr):
    tl.atomic_add(out_ptr, tl.load(in_ptr + tl.program_id(0)))


@triton.jit
def double(in_ptr, out_ptr):
    tl.store(out_ptr, tl.load(in_ptr) * 2)


def build(device: str) -> Workload:
    programs = 64 if device == "cpu" else 1 << 14  # a GPU runs some hundred at once, in their order

    def fn(x: torch.Tensor) -> torch.Tensor:
        total, out = torch.zeros(1, device=device), torch.empty(1, device=device)
        racing_sum[(programs,)](x, total)
        double[(1,)](total, out)
        return out

    x = torch.rand(programs, device=device)
    return Workload(torch.compiler.disable(fn), (x,))
