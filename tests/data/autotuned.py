"""Autotuned kernels: one by @triton.autotune, two by Inductor, one of which is a reduction."""

import torch
import torch._inductor.config
import triton
import triton.language as tl

from tracing import Workload

torch._inductor.config.max_autotune_pointwise = True
CONFIGS = [triton.Config({"BLOCK": size}, num_warps=1) for size in (64, 128, 256)]


@triton.autotune(CONFIGS, key=["n"])
@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


@torch.compiler.disable
def doubled(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    double[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return y


def build(device: str, rows: int = 16, columns: int = 128) -> Workload:
    x = torch.rand(rows, columns, device=device)
    return Workload(lambda x: doubled(torch.sin(x) + 1).sum(1), (x,))
