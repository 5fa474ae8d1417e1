"""Float scalars that JSON does not have, one a launch, and integers for which Triton specialises a kernel.

A2 names its arguments.

- sign [scalar]: configuration of fill; launch 3. 0.0, not -0.0.
- infinity [scalar]: configuration of fill; launch 1. Minus infinity, not infinity.
- undefined [scalar]: configuration of fill; launch 0. Infinity, not NaN.
- finite [scalar]: configuration of fill; launch 4. The next float32.
- defined [scalar]: configuration of fill; launch 2. A number, not minus infinity.
- multiple [scalar]: configuration of first; launch 5. 17, not 16: the kernel is specialised for multiples of
  16.
- one [scalar]: configuration of first; launch 6. 2, not 1: the kernel is specialised for 1.
- unused [scalar]: configuration of fill; launch 4; hidden. An argument that the kernel does not use.
"""

import math

import torch
import triton
import triton.language as tl

from tracing import Workload

FLOATS = [math.nan, math.inf, -math.inf, -0.0, 1.5]
COUNTS = [16, 1]
FAULTS = {
    "undefined": (0, math.inf),
    "infinity": (1, -math.inf),
    "defined": (2, -3.4e38),
    "sign": (3, 0.0),
    "finite": (4, 1.5000001192092896),
    "multiple": (5, 17),
    "one": (6, 2),
}


@triton.jit
def fill(out_ptr, value, unused, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, value)


@triton.jit
def first(in_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at), mask=at < count)


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    values = [*FLOATS, *COUNTS]
    if fault in FAULTS:
        number, value = FAULTS[fault]
        values[number] = value

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        outs = [torch.zeros(32, device=device) for _ in values]
        for number, (value, out) in enumerate(zip(values, outs, strict=True)):
            unused = 2.5 if fault == "unused" and number == 4 else 0.5
            if isinstance(value, int):
                first[(1,)](x, out, value, BLOCK=32)
            elif variant:
                fill[(1,)](value=value, unused=unused, out_ptr=out, BLOCK=32)
            else:
                fill[(1,)](out, value, unused, BLOCK=32)
        return outs

    return Workload(lambda x: launches(x), (torch.rand(32, device=device),))
