"""One buffer in three slices: two have a kernel each that writes them, nothing reads the third.

A2 has an operator write the third slice, and has the host write what is there already.

- left [writer]: configuration of write; launch 0. The writer of the left slice has another factor.
- right [writer]: configuration of write; launch 1. The writer of the right slice has another factor.
- misplaced [writer]: configuration of write; launch 0; argument out_ptr. The writer of the left slice writes
  the third one.
- poked [writer]: host; runs b; read by copy as in_ptr at 2. The host changes the left slice when the right
  one has been written.
- later [writer]: host; runs b; read by copy as in_ptr at 3. The host changes the right slice.
- both [writer]: host; runs b; read by copy as in_ptr at 4. The host changes an element of what is read of
  both.
- operator [writer]: operator of aten::add_*; runs b; read by copy as in_ptr at 2. An operator changes a part
  of the left slice.
- wide [writer]: operator of aten::mul_*; runs b; read by copy as in_ptr at 2. An operator changes the whole
  buffer.
- unread [writer]: equal; hidden. The host changes the third slice, which nothing reads.
- added [missing]: equal or missing of write; hidden. A kernel writes the third slice, which nothing reads.
"""

import ctypes

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def write(in_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * factor)


@triton.jit
def copy(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at))


def poke(tensor: torch.Tensor) -> None:
    ctypes.memset(tensor.data_ptr(), 1, 4)


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        buffer = torch.zeros(96, device=device)
        left, right, third = buffer[:32], buffer[32:64], buffer[64:]
        outs = [torch.zeros(32, device=device) for _ in range(3)]
        first = third if fault == "misplaced" else left
        write[(1,)](x[:32], first, 3.5 if fault == "left" else 2.5, BLOCK=32)
        write[(1,)](x[32:], right, 5.5 if fault == "right" else 4.5, BLOCK=32)
        if fault == "poked":
            poke(left[3:])
        right[8:16].mul_(2)
        if variant:
            third.add_(1)
            same = left.clone()
            ctypes.memmove(left.data_ptr(), same.data_ptr(), 128)
        if fault == "operator":
            left[4:8].add_(1)
        if fault == "wide":
            buffer.mul_(2)
        if fault == "unread":
            poke(third)
        if fault == "added":
            write[(1,)](x[:32], third, 0.5, BLOCK=32)
        copy[(1,)](left, outs[0], BLOCK=32)
        if fault == "later":
            poke(right)
        copy[(1,)](right, outs[1], BLOCK=32)
        if fault == "both":
            poke(right[2:])
        copy[(1,)](buffer[16:48], outs[2], BLOCK=32)
        return outs

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
