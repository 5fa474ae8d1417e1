"""Two streams of a GPU: the second reads what the first writes, and does not wait for it."""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def produce(in_ptr, out_ptr, turn, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(in_ptr + offsets) + turn)


@triton.jit
def consume(in_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(in_ptr + offsets) * 2)


def build(device: str, waits: bool = False) -> Workload:
    side = torch.cuda.Stream()

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        between, out = torch.zeros_like(x), torch.zeros_like(x)
        main = torch.cuda.current_stream()
        for turn in range(4):
            if waits or turn == 0:
                side.wait_stream(main)
            with torch.cuda.stream(side):
                produce[(1,)](x, between, turn, BLOCK=64)
            if waits:
                main.wait_stream(side)
            consume[(1,)](between, out, BLOCK=64)
        torch.cuda.synchronize()
        return out

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
