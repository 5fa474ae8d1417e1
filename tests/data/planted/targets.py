"""An operator between two kernels whose target is another tensor, or another part of it. B has the fault.

A2 runs operators whose results nobody uses.

- copied [writer] (A = op=copied; A2 = op=copied,variant=1; B = op=copied,fault=1): operator of aten::copy_;
  runs a; read by shift as in_ptr at 1. `copy_`.
- added [writer] (A = op=added; A2 = op=added,variant=1; B = op=added,fault=1): operator of aten::add_*;
  runs a; read by shift as in_ptr at 1. In place.
- cleared [writer] (A = op=cleared; A2 = op=cleared,variant=1; B = op=cleared,fault=1): operator of
  aten::zero_; runs a; read by shift as in_ptr at 1. `zero_`.
- indexed [writer] (A = op=indexed; A2 = op=indexed,variant=1; B = op=indexed,fault=1): operator of
  aten::*index_put*; runs a; read by shift as in_ptr at 1. Elements are assigned.
- foreach [writer] (A = op=foreach; A2 = op=foreach,variant=1; B = op=foreach,fault=1): operator of
  aten::_foreach_*; runs a; read by shift as in_ptr at 1. One of a list of tensors.
- out [writer] (A = op=out; A2 = op=out,variant=1; B = op=out,fault=1): operator of aten::mul*; runs a; read
  by shift as in_ptr at 1. `out=`.
- half [writer] (A = op=half; A2 = op=half,variant=1; B = op=half,fault=1): operator of aten::mul_*; runs a;
  read by shift as in_ptr at 1. The other half of the tensor.
- fewer [writer] (A = op=fewer; A2 = op=fewer,variant=1; B = op=fewer,fault=1): operator of aten::mul_*;
  read by shift as in_ptr at 1. A quarter of the tensor instead of a half.
- second [writer] (A = op=second; A2 = op=second,variant=1; B = op=second,fault=1): operator of aten::copy_;
  runs a; read by shift as in_ptr at 1. The second of two equal calls.
- followed [writer] (A = op=followed; A2 = op=followed,variant=1; B = op=followed,fault=1): operator of
  aten::add_*; runs a; through aten::relu; read by shift as in_ptr at 1. Another operator reads the tensor.
- exchanged [writer] (A = op=exchanged; A2 = op=exchanged,variant=1; B = op=exchanged,fault=1): operator of
  aten::mul*; runs ab; through aten::copy_; read by shift as in_ptr at 1. Two equal calls exchange their
  sources.
- moved [writer] (A = op=moved; A2 = op=moved,variant=1; B = op=moved,fault=1): operator of aten::add_*; runs
  ab; read by shift as in_ptr at 1. The operator runs before the kernel that overwrites its result.
- passed [writer] (A = op=passed; A2 = op=passed,variant=1; B = op=passed,fault=1): configuration of shift;
  launch 1. The target is equal, and the kernel reads another tensor.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * 2.5)


@triton.jit
def shift(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) + 1)


def act(op: str, fault: int, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> None:
    """The operator; its target is `y`, or `z` with the fault."""
    target = z if fault else y
    if op == "copied":
        target.copy_(x)
    if op in ("added", "followed"):
        target.add_(1)
    if op == "cleared":
        target.zero_()
    if op == "indexed":
        target[torch.tensor([3, 5])] = torch.ones(2)
    if op == "foreach":
        torch._foreach_add_([x.clone(), target], 1)
    if op == "out":
        torch.mul(x, 2, out=target)
    if op == "half":
        (y[32:] if fault else y[:32]).mul_(3)
    if op == "fewer":
        (y[:16] if fault else y[:32]).mul_(3)
    if op == "second":
        y.copy_(x + 1)
        target.copy_(x * 3)
    if op == "exchanged":
        (z if fault else y).copy_(x + 1)
        (y if fault else z).copy_(x * 3)
    if op == "passed":
        y.copy_(x)


def build(device: str, op: str = "copied", fault: int = 0, variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        y, z, out = torch.zeros_like(x), torch.zeros_like(x), torch.zeros_like(x)
        if op == "moved" and fault:
            y.add_(1)
        scale[(4,)](x, y, BLOCK=16)
        if op == "moved" and not fault:
            y.add_(1)
        if variant:
            y.mul(2).sum()
        act(op, fault, x, y, z)
        given = y.relu() if op == "followed" else z if op == "passed" and fault else y
        shift[(4,)](given, out, BLOCK=16)
        return [y, z, out]

    return Workload(lambda x: launches(x), (torch.rand(64, device=device) + 0.5,))
