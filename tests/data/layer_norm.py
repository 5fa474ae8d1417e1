"""A layer norm as an autograd function of hand-written kernels, at which Dynamo breaks the graph."""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def forward_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < N
    x = tl.load(x_ptr + row * N + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / N
    centred = tl.where(inside, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, 0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    y = centred * rstd * tl.load(w_ptr + at, mask=inside) + tl.load(b_ptr + at, mask=inside)
    tl.store(y_ptr + row * N + at, y, mask=inside)


@triton.jit
def input_kernel(dx_ptr, dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < N
    x = tl.load(x_ptr + row * N + at, mask=inside, other=0.0).to(tl.float32)
    wdy = (tl.load(w_ptr + at, mask=inside) * tl.load(dy_ptr + row * N + at, mask=inside)).to(tl.float32)
    xhat = tl.where(inside, (x - tl.load(mean_ptr + row)) * tl.load(rstd_ptr + row), 0.0)
    wdy = tl.where(inside, wdy, 0.0)
    dx = (wdy - xhat * tl.sum(xhat * wdy, 0) / N - tl.sum(wdy, 0) / N) * tl.load(rstd_ptr + row)
    tl.store(dx_ptr + row * N + at, dx, mask=inside)


@triton.jit
def weight_kernel(dw_ptr, db_ptr, dy_ptr, x_ptr, mean_ptr, rstd_ptr, M, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dw = tl.zeros([BLOCK], tl.float32)
    db = tl.zeros([BLOCK], tl.float32)
    for row in range(M):
        x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * N + at, mask=at < N, other=0.0).to(tl.float32)
        dw += dy * (x - tl.load(mean_ptr + row)) * tl.load(rstd_ptr + row)
        db += dy
    tl.store(dw_ptr + at, dw, mask=at < N)
    tl.store(db_ptr + at, db, mask=at < N)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shape, weight, bias, eps):
        y = torch.empty_like(x)
        M, N = x.shape
        mean = torch.empty((M,), dtype=torch.float32, device=x.device)
        rstd = torch.empty((M,), dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(N)
        forward_kernel[(M,)](x, y, weight, bias, mean, rstd, N, eps, BLOCK=block, num_warps=1, num_ctas=1)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.block = block
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, mean, rstd = ctx.saved_tensors
        M, N = x.shape
        dx, dw, db = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
        input_kernel[(M,)](dx, dy, x, weight, mean, rstd, N, BLOCK=ctx.block)
        grid = lambda meta: (triton.cdiv(N, meta["BLOCK"]),)  # noqa: E731
        weight_kernel[grid](dw, db, dy, x, mean, rstd, M, N, BLOCK=16, num_ctas=1)
        return dx, None, dw, db, None


def build(device: str) -> Workload:
    weight, bias = (torch.rand(24, device=device, requires_grad=True) for _ in range(2))
    x = torch.randn(3, 24, device=device, requires_grad=True)

    def normed(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return LayerNorm.apply(x, (24,), weight, bias, 1e-5).square()

    return Workload(normed, (x, weight, bias), backward=True)
