"""Correct programs that share, reuse and overwrite memory, by name: none of them has evidence of a fault."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def gelu(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(x + at, value * tl.sigmoid(1.702 * value), mask=at < n)


@triton.jit
def append(cache, new, at, width, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    row = tl.load(new + tl.program_id(0) * width + column, mask=column < width)
    tl.store(cache + (at + tl.program_id(0)) * width + column, row, mask=column < width)


@triton.jit
def rotate(x, cos, sin, width, HALF: tl.constexpr):
    row, column = tl.program_id(0) * width, tl.arange(0, HALF)
    a, b = tl.load(x + row + column), tl.load(x + row + HALF + column)
    c, s = tl.load(cos + column), tl.load(sin + column)
    tl.store(x + row + column, a * c - b * s)
    tl.store(x + row + HALF + column, a * s + b * c)


@triton.jit
def matmul(a, b, c, M, N, K, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        inner = k + tl.arange(0, BLOCK)
        left = tl.load(
            a + row[:, None] * K + inner[None, :], mask=(row[:, None] < M) & (inner[None, :] < K), other=0.0
        )
        right = tl.load(
            b + inner[:, None] * N + column[None, :],
            mask=(inner[:, None] < K) & (column[None, :] < N),
            other=0.0,
        )
        total += tl.dot(left, right, input_precision="ieee")
    tl.store(c + row[:, None] * N + column[None, :], total, mask=(row[:, None] < M) & (column[None, :] < N))


@triton.jit
def accumulate(x, partial, lock, rows, width, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    program, column = tl.program_id(0), tl.arange(0, BLOCK)
    group = program % GROUPS
    row = tl.load(x + program * width + column, mask=column < width, other=0.0)
    while tl.atomic_cas(lock + group, 0, 1) == 1:
        pass
    at = partial + group * width + column
    tl.store(at, tl.load(at, mask=column < width) + row, mask=column < width)
    tl.atomic_xchg(lock + group, 0)


def by_hand(fn: Callable[..., object]) -> Callable[..., object]:
    """A function whose kernels Inductor does not see: torch.compile would copy what they share."""
    eager = torch.compiler.disable(fn)
    return lambda *xs: eager(*xs)


def _gelus(device: str) -> Workload:
    def fn(*xs: torch.Tensor) -> list[torch.Tensor]:
        done = [x.clone() for x in xs]
        for x in done:
            gelu[(triton.cdiv(x.numel(), 64),)](x, x.numel(), BLOCK=64)
        return done

    return Workload(by_hand(fn), tuple(torch.randn(size, device=device) for size in (64, 100, 1000)))


def _cache(device: str) -> Workload:
    def fn(cache: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        cache = cache.clone()
        for at in range(0, 12, 4):
            append[(4,)](cache, new, at, 24, BLOCK=32)
            append[(4,)](cache, cache[at : at + 4], at + 16, 24, BLOCK=32)
        return cache

    return Workload(by_hand(fn), (torch.rand(32, 24, device=device), torch.rand(4, 24, device=device)))


def _rotary(device: str) -> Workload:
    def fn(qkv: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        qkv = qkv.clone()
        for _ in range(2):
            rotate[(24,)](qkv, angle.cos(), angle.sin(), 32, HALF=16)
        return qkv

    return Workload(by_hand(fn), (torch.rand(3, 8, 32, device=device), torch.rand(16, device=device)))


def _matmuls(device: str) -> Workload:
    def fn(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            c = torch.empty(a.shape[0], b.shape[1], device=a.device)
            grid = (triton.cdiv(a.shape[0], 16), triton.cdiv(b.shape[1], 16))
            matmul[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], BLOCK=16)
            a = torch.cat([c, c])[:, : b.shape[0]].contiguous()
        return c

    return Workload(by_hand(fn), (torch.rand(16, 16, device=device), torch.rand(16, 40, device=device)))


def _locks(device: str) -> Workload:
    def fn(x: torch.Tensor) -> torch.Tensor:
        partial = torch.zeros(2, x.shape[1], device=x.device)
        lock = torch.zeros(2, dtype=torch.int32, device=x.device)
        accumulate[(x.shape[0],)](x, partial, lock, x.shape[0], x.shape[1], GROUPS=2, BLOCK=32)
        return partial.sum(0)

    return Workload(by_hand(fn), (torch.rand(8, 24, device=device),))


def _slices(device: str) -> Workload:
    def fn(x: torch.Tensor) -> list[torch.Tensor]:
        x = x.clone()
        x[1:] = x[:-1] * 2
        x[:, ::2] += 1
        x.t().add_(x.flip(0).t())
        parts = torch.cat([x[:, 5:], x.roll(1, 0), x.cumsum(1)], 1)
        return [parts, torch.sort(x, 1).values, x.softmax(1), torch.nn.functional.pad(x, (1, 2)), x]

    return Workload(fn, (torch.rand(9, 20, device=device),))


def _training(device: str) -> Workload:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Embedding(50, 24), torch.nn.LayerNorm(24), torch.nn.Linear(24, 40), torch.nn.GELU(),
        torch.nn.Flatten(0, 1), torch.nn.BatchNorm1d(40), torch.nn.Linear(40, 10),
    ).to(device)  # fmt: skip

    def fn(tokens: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = torch.nn.functional.cross_entropy(model(tokens), tokens.flatten() % 10)
        return loss

    return Workload(fn, (torch.randint(50, (3, 7), device=device),), backward=True)


PROGRAMS = (_gelus, _cache, _rotary, _matmuls, _locks, _slices, _training)


def build(device: str, name: str = "gelus") -> Workload:
    return next(program for program in PROGRAMS if program.__name__ == f"_{name}")(device)
