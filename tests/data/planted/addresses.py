"""Kernels that are given addresses: as integers, and as a table of pointers in memory.

A2's tensors lie elsewhere.

- plain [address] (A = fault=none,variant=0; A2 = fault=none,variant=1; B = fault=none,variant=2): equal;
  hidden. Nothing differs but addresses.
- factor [address]: configuration of scale; launch 0. The kernel before has another factor.
- after [address]: configuration of scale; launch 3. The kernel after them has another factor.
- poked [address]: host or kernel of * or undecided; runs b. The host changes memory that only the table
  names.
- swapped [address]: host or kernel of gather or operator of aten::* or undecided. Two pointers of the table
  are swapped.
- other [address]: configuration of fetch or kernel of fetch or undecided. The integer is the address of
  another tensor.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * factor)


@triton.jit
def gather(table_ptr, out_ptr, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for i in range(COUNT):
        source = tl.load(table_ptr + i).to(tl.pointer_type(tl.float32))
        tl.store(out_ptr + i * BLOCK + at, tl.load(source + at))


@triton.jit
def fetch(address, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(address.to(tl.int64).to(tl.pointer_type(tl.float32)) + at))


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        memory = torch.zeros(512 + 64 * variant, device=device)[64 * variant :]
        left, right, scaled = memory[:32], memory[96:128], torch.zeros(32, device=device)
        gathered, fetched, out = (torch.zeros(n, device=device) for n in (64, 32, 64))
        right.fill_(1.5)
        scale[(1,)](x, left, 3.5 if fault == "factor" else 2.5, BLOCK=32)
        if fault == "poked":
            right.numpy()[5] = 0.5
        pointers = [left.data_ptr(), right.data_ptr()]
        table = torch.tensor(pointers[::-1] if fault == "swapped" else pointers, device=device)
        gather[(1,)](table, gathered, COUNT=2, BLOCK=32)
        fetch[(1,)]((right if fault == "other" else left).data_ptr(), fetched, BLOCK=32)
        scale[(1,)](gathered[:32], scaled, 3.5 if fault == "after" else 1.5, BLOCK=32)
        scale[(1,)](gathered, out, 0.5, BLOCK=64)
        return [scaled, fetched, out]

    return Workload(lambda x: launches(x), (torch.rand(32, device=device),))
