"""Launches on two buffers, in swapped order.

A2 launches what is independent in another order.

- dependent [order]: order. Doubling and increasing the same buffer are swapped.
- fills [order]: order or configuration of fill. Two launches that fill the same buffer: the last one counts.
- reader [order]: order. A copy is taken after the buffer is doubled, not before.
- rotated [order]: order. The first of three dependent launches comes last.
- overlapping [order]: order. Launches on halves that overlap are swapped.
- operator [order]: order or operator of aten::* or undecided. An operator comes after a kernel, not before.
- same [order]: order or configuration of copy. Two launches of one kernel, the second of which reads what the
  first writes.
- factor [order]: configuration of fill. A scalar differs, and independent launches are swapped, too.
- disjoint [order]: equal; hidden. Launches on disjoint slices of one buffer are swapped.
- independent [order]: equal; hidden. Launches of one kernel on two buffers are swapped.
- readers [order]: equal; hidden. Two readers of one buffer are swapped.
- far [order]: equal; hidden. A launch moves past three others that are independent.
"""

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def double(ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(ptr + at, tl.load(ptr + at) * 2)


@triton.jit
def increase(ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(ptr + at, tl.load(ptr + at) + 1)


@triton.jit
def fill(ptr, value, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(ptr + at, at * 0 + value)


@triton.jit
def copy(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at))


ORDERS = {  # of the steps of `build`, by their numbers
    "dependent": [1, 0],
    "fills": [0, 1, 3, 2],
    "reader": [0, 1, 2, 3, 5, 4],
    "rotated": [1, 4, 0],
    "overlapping": [0, 1, 2, 3, 4, 5, 7, 6],
    "operator": [0, 1, 2, 3, 4, 5, 6, 7, 9, 8],
    "same": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 10],
    "disjoint": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 12],
    "independent": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 14],
    "readers": [*range(16), 17, 16],
    "far": [0, 1, 4, 5, 2, 3],
}


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        p, q, r, s, t = (x[i].clone() for i in range(5))
        outs = [torch.zeros(32, device=device) for _ in range(5)]
        steps: list[Callable[[], object]] = [
            lambda: double[(1,)](p, BLOCK=32),
            lambda: increase[(1,)](p, BLOCK=32),
            lambda: fill[(1,)](q, 1.5, BLOCK=32),
            lambda: fill[(1,)](q, 3.5 if fault == "factor" else 2.5, BLOCK=32),
            lambda: copy[(1,)](p, outs[0], BLOCK=32),
            lambda: double[(1,)](p, BLOCK=32),
            lambda: double[(1,)](r[:16], BLOCK=16),
            lambda: increase[(1,)](r[8:24], BLOCK=16),
            lambda: s.add_(1),
            lambda: double[(1,)](s, BLOCK=32),
            lambda: copy[(1,)](s, t, BLOCK=32),
            lambda: copy[(1,)](t, outs[1], BLOCK=32),
            lambda: double[(1,)](r[:16], BLOCK=16),
            lambda: increase[(1,)](r[16:], BLOCK=16),
            lambda: increase[(1,)](p, BLOCK=32),
            lambda: increase[(1,)](q, BLOCK=32),
            lambda: copy[(1,)](p, outs[2], BLOCK=32),
            lambda: copy[(1,)](p, outs[3], BLOCK=32),
        ]
        order = ORDERS.get(fault, [])
        order = [*order, *(number for number in range(len(steps)) if number not in order)]
        if variant:
            order[-2:] = order[:-3:-1]
        for number in order:
            steps[number]()
        return [p, q, r, s, t, *outs]

    return Workload(lambda x: launches(x), (torch.rand(5, 32, device=device),))
