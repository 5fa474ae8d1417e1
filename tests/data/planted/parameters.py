"""A module that counts its calls; what it leaves in its parameters, buffers and inputs is a result, too.

A2 adds nothing to the count, by an operator.

- parameter [state]: result or operator of aten::mul_*. A parameter is changed after the last launch.
- bystander [state]: result or operator of aten::mul_*. Likewise one that no kernel reads.
- buffer [state]: result or operator of aten::add_*. The buffer counts twice.
- argument [state]: result or operator of aten::add_*. The module changes its input.
- keyword [state]: result or operator of aten::add_*. The module changes its keyword argument.
- poked [state]: result or host. The host changes a parameter after the last launch, by its address.
"""

import ctypes

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def weigh(in_ptr, weight_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * tl.load(weight_ptr + at))


class Counting(torch.nn.Module):
    def __init__(self, fault: str, variant: int) -> None:
        super().__init__()
        self.fault, self.variant = fault, variant
        self.weight = torch.nn.Parameter(torch.rand(64))
        self.bias = torch.nn.Parameter(torch.rand(8))
        self.register_buffer("calls", torch.zeros(1))

    @torch.compiler.disable
    @torch.no_grad()
    def forward(self, x: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        weigh[(4,)](x, self.weight, out, BLOCK=16)
        self.calls.add_(1)
        if self.variant:
            self.calls.add_(0)
        self.change(x, limit)
        return out

    def change(self, x: torch.Tensor, limit: torch.Tensor) -> None:
        if self.fault == "parameter":
            self.weight.mul_(1.5)
        if self.fault == "bystander":
            self.bias.mul_(1.5)
        if self.fault == "buffer":
            self.calls.add_(1)
        if self.fault == "argument":
            x.add_(1)
        if self.fault == "keyword":
            limit.add_(1)
        if self.fault == "poked":
            ctypes.memset(self.weight.data_ptr() + 16, 1, 4)


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    module = Counting(fault, variant).to(device).eval()
    return Workload(module, (torch.rand(64, device=device),), {"limit": torch.ones(4, device=device)})
