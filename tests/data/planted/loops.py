"""A loop of eight iterations with two launches and an operator each.

A2 counts its iterations by another tensor, which nothing reads.

- scalar [loop]: configuration of scale; launch 10; iteration 5. A scalar differs in iteration 5.
- poked [loop]: host; runs b; read by shift as in_ptr at 7; iteration 3. The host writes in iteration 3.
- operator [loop]: operator of aten::add_*; runs b; read by shift as in_ptr at 13; iteration 6. An operator
  more in iteration 6.
- skipped [loop]: operator of aten::mul_*; runs a; read by scale as in_ptr at 6; iteration 3. Iteration 2
  leaves its operator out, which iteration 3 reads.
- missing [loop]: missing of shift; runs a; launch 9. Iteration 4 lacks its second launch.
- extra [loop]: missing of scale; runs b. One iteration more, at the end.
- shorter [loop]: missing of scale; runs a. One iteration less, at the end.
- code [loop]: code of shift; launch 5; iteration 2. Iteration 2 launches another kernel of the same name.
- swapped [loop]: order. The two launches of iteration 4 are swapped.
- other [loop]: equal or missing of idle; hidden. An idle launch in iteration 1, for which nothing else
  changes.
- shadowed [loop]: configuration of scale; launch 13; after missing of idle. An idle launch in iteration 1,
  and a scalar in iteration 6.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * factor)


def shifting(term: float) -> Any:
    TERM = tl.constexpr(term)

    @triton.jit
    def shift(in_ptr, out_ptr, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(in_ptr + at) + TERM)

    return shift


@triton.jit
def idle(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at))


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    shift, other = shifting(0.5), shifting(1.5)

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        between, unread, count = torch.zeros_like(x), torch.zeros_like(x), torch.zeros(1, device=device)

        def scales(i: int) -> None:
            factor = 0.75 if (fault, i) in (("scalar", 5), ("shadowed", 6)) else 0.5
            scale[(1,)](x, between, factor, BLOCK=32)

        def shifts(i: int) -> None:
            if (fault, i) != ("missing", 4):
                (other if (fault, i) == ("code", 2) else shift)[(1,)](between, x, BLOCK=32)

        x = x.clone()
        for i in range({"extra": 9, "shorter": 7}.get(fault, 8)):
            steps = [scales, shifts]
            if (fault, i) == ("swapped", 4):
                steps.reverse()
            steps[0](i)
            if (fault, i) == ("poked", 3):
                between.numpy()[5] = 0.5
            if (fault, i) == ("operator", 6):
                between.add_(1)
            if fault in ("other", "shadowed") and i == 1:
                idle[(1,)](between, unread, BLOCK=32)
            steps[1](i)
            if (fault, i) != ("skipped", 2):
                x.mul_(2)
            if variant:
                count.add_(1)
        return x

    return Workload(lambda x: launches(x), (torch.rand(32, device=device),))
