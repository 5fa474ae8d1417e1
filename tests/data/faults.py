"""Two kernels in a row, one of them tuned, and a fault on request: `faults.py:fault=grid`."""

import ctypes

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(in_ptr + offsets) * 2)


@triton.jit
def negate(ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(ptr + offsets, -tl.load(ptr + offsets))


@triton.jit
def shift(in_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(in_ptr + offsets, mask=offsets < n) + 1, mask=offsets < n)


def tuned(*blocks: int) -> object:
    """`shift` with an autotuner that takes the first of these."""
    seconds = iter(range(1, 100))

    def bench(call, quantiles):  # type: ignore[no-untyped-def]
        call()
        return [float(next(seconds))] * 3

    return triton.autotune([triton.Config({"BLOCK": block}) for block in blocks], ["n"], do_bench=bench)(
        shift
    )


def poke(tensor: torch.Tensor, device: str) -> None:
    """Write into a tensor, unseen by torch."""
    if device == "cpu":
        ctypes.memset(tensor.data_ptr(), 1, 4)
        return
    torch.cuda.synchronize()
    memset = ctypes.CDLL("libcuda.so.1").cuMemsetD8_v2
    memset.argtypes = [ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t]
    assert memset(tensor.data_ptr(), 1, 4) == 0


def build(device: str, fault: str = "none") -> Workload:
    last = tuned(128, 64) if fault == "winner" else tuned(64, 128)

    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        between, out = torch.zeros_like(x), torch.zeros_like(x)
        scale[(3 if fault == "grid" else 4,)](x, between, BLOCK=64)
        if fault == "inserted":
            negate[(1,)](between, BLOCK=64)
        if fault == "operator":
            between.add_(1)
        if fault == "host":
            poke(between, device)
        last[lambda meta: (triton.cdiv(256, meta["BLOCK"]),)](between, out, 256)  # type: ignore[index]
        return out

    return Workload(lambda x: launches(x), (torch.rand(256, device=device) + 1,))
