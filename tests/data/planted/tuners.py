"""A kernel with an autotuner, of which the first configuration wins, and one without.

A2's autotuner has another losing configuration.

- winner [configuration]: winner of shift; launch 1; hidden. Another configuration wins.
- constant [configuration]: winner of shift; launch 1. Another configuration wins, and gives other results.
- warps [configuration]: winner of shift; launch 1; hidden. A configuration with other warps wins.
- grid [configuration]: configuration of shift; launch 1. The grid leaves a block out.
- scalar [configuration]: configuration of shift; launch 1. Another scalar.
- other_kernel [configuration]: configuration of scale; launch 0; hidden. The kernel without an autotuner
  has other warps.
- code [code]: code of shift; launch 1. The tuned kernel has another constant.
- single [configuration] (A = fault=only,variant=0; A2 = fault=only,variant=0; B = fault=single,variant=0):
  winner of shift or configuration of shift; launch 1; hidden. The only configuration of the tuner is another
  one.
- untuned [configuration]: configuration of shift; launch 1; hidden. The program launches the kernel without
  its tuner, with another block.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * 2)


def shifting(term: float) -> Any:
    TERM = tl.constexpr(term)

    @triton.jit
    def shift(in_ptr, out_ptr, n, factor, BIAS: tl.constexpr, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(in_ptr + at, mask=at < n) * factor + TERM + BIAS
        tl.store(out_ptr + at, value, mask=at < n)

    return shift


def config(block: int, bias: int = 0, warps: int = 4) -> triton.Config:
    return triton.Config({"BLOCK": block, "BIAS": bias}, num_warps=warps)


FIRST = {
    "winner": config(32),
    "constant": config(16, bias=1),
    "warps": config(16, warps=8),
    "single": config(64),
}


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    first, other = FIRST.get(fault, config(16)), config(64 if variant else 32)
    configs = [first] if fault in ("only", "single") else [first, other]
    shift = shifting(2 if fault == "code" else 1)
    tuned = triton.autotune(configs, ["n"], do_bench=lambda call, quantiles: (call(), [1.0] * 3)[1])(shift)
    less = 1 if fault == "grid" else 0

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        scaled, out = torch.zeros_like(x), torch.zeros_like(x)
        scale[(4,)](x, scaled, BLOCK=16, num_warps=8 if fault == "other_kernel" else 4)
        if fault == "untuned":
            shift[(1,)](scaled, out, 64, 1.5, BIAS=0, BLOCK=64)
            return out
        factor = 2.5 if fault == "scalar" else 1.5
        tuned[lambda meta: (triton.cdiv(64, meta["BLOCK"]) - less,)](scaled, out, 64, factor)
        return out

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
