"""A kernel that uses its module: functions of its own and of others, constants, types, libdevice."""

import torch
import triton
import triton.language as tl
from torch._inductor.runtime.triton_helpers import promote_to_tensor
from triton.language.extra import libdevice

from tracing import Workload

LOWEST = tl.constexpr(float("-inf"))
SCALE = tl.constexpr(0.5)
WIDE = tl.float32


@triton.constexpr_function
def half(n):
    return n // 2


@triton.jit
def scaled(x, by: tl.constexpr = SCALE):
    return x * by + half(4)


@triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit(do_not_specialize=["n"])
def helped(x_ptr, out_ptr, n, MODE: tl.constexpr, ACC: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # of this program
    x = tl.load(x_ptr + at, mask=at < n, other=LOWEST).to(ACC)
    if MODE == "exp":
        x = libdevice.exp(x)
    tl.store(out_ptr + at, promote_to_tensor(scaled(x)).to(WIDE), mask=at < n)


def build(device: str, mode: str = "plain") -> Workload:
    @torch.compiler.disable
    def launched(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(100, device=device)
        helped[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100, MODE=mode, ACC=tl.float32)
        return out

    return Workload(lambda x: launched(x) + 1, (torch.rand(100, device=device),))
