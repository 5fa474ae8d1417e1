"""An operator between two kernels.

A2 runs operators whose results nobody uses.

- added [operator]: operator of aten::add_*; runs b; read by shift as in_ptr at 1. Only B adds in place.
- missing [operator]: operator of aten::mul_*; runs a; read by shift as in_ptr at 1. Only A multiplies
  in place.
- other [operator]: operator of aten::*; runs ab; read by shift as in_ptr at 1. A multiplies, B divides.
- scalar [operator]: operator of aten::mul_* or undecided; read by shift as in_ptr at 1. Both multiply, by
  other numbers.
- operand [operator]: operator of aten::mul_* or undecided; read by shift as in_ptr at 1. Both multiply, by
  other tensors.
- out [operator]: operator of aten::sub*; runs b; read by shift as in_ptr at 1. Into an `out=` that a kernel
  wrote.
- functional [operator]: operator of aten::relu* or operator of aten::sub*; runs b; read by shift as in_ptr at
  1. Into a new tensor.
- item [operator]: operator of aten::*; runs b; read by shift as in_ptr at 1. One element is assigned.
- foreach [operator]: operator of aten::_foreach_*; runs b; read by shift as in_ptr at 1. A list of tensors is
  changed.
- masked [operator]: operator of aten::masked_fill_*; runs b; read by shift as in_ptr at 1. Where a mask is
  true.
- resized [operator]: operator of aten::*; runs b; read by shift as in_ptr at 1. `set_data`: another tensor's
  memory.
- last [operator]: operator of aten::add_* or result; runs b. After the last launch, into the result.
- factor [operator]: configuration of scale; launch 0. The kernel before the operator has another factor.
- undone [operator]: equal; hidden. B multiplies by 4 and by a quarter: what is read is equal.
- custom [operator]: operator of planted::bump; runs b; read by shift as in_ptr at 1. An operator of the
  program's own.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * factor)


@triton.jit
def shift(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) + 1)


@torch.library.custom_op("planted::bump", mutates_args=("tensor",))
def bump(tensor: torch.Tensor) -> None:
    tensor.numpy()[3] += 1


def extra(fault: str, tensor: torch.Tensor) -> torch.Tensor:
    """What B does on top."""
    if fault == "added":
        tensor.add_(1)
    if fault == "out":
        torch.sub(tensor, 1, out=tensor)
    if fault == "functional":
        return torch.relu(tensor - 1)
    if fault == "item":
        tensor[7] = 0.25
    if fault == "foreach":
        torch._foreach_add_([tensor], 1)
    if fault == "masked":
        tensor.masked_fill_(tensor > 2, 0.5)
    if fault == "resized":
        tensor.data = torch.ones(64)
    if fault == "undone":
        tensor.mul_(4)
        tensor.mul_(0.25)
    if fault == "custom":
        bump(tensor)
    return tensor


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        between, out = torch.zeros_like(x), torch.zeros_like(x)
        scale[(4,)](x, between, 3.5 if fault == "factor" else 2.5, BLOCK=16)
        if fault == "other":
            between.div_(2)
        elif fault == "operand":
            between.mul_(x + 1)
        elif fault != "missing":
            between.mul_(3 if fault == "scalar" else 2)
        if variant:
            between.add(1).sum()
        shift[(4,)](extra(fault, between), out, BLOCK=16)
        if fault == "last":
            out.add_(1)
        return out

    return Workload(lambda x: launches(x), (torch.rand(64, device=device) + 0.5,))
