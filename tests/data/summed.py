"""A kernel that adds up a vector, block by block."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def summed(in_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, n, BLOCK):
        total += tl.sum(tl.load(in_ptr + start + tl.arange(0, BLOCK)), axis=0)
    tl.store(out_ptr, total)
