"""Programs whose launches use memory wrongly, by name."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def smooth(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    right = tl.load(x + at + 1, mask=at + 1 < n, other=0.0)
    tl.store(x + at, (tl.load(x + at, mask=at < n) + right) / 2, mask=at < n)


@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * 2, mask=at < n)


@triton.jit
def row_sums(x, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * columns + at, mask=at < columns, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(row, 0))


def by_hand(fn: Callable[..., object]) -> Callable[..., object]:
    """A function whose kernels Inductor does not see: torch.compile would copy what they share."""
    eager = torch.compiler.disable(fn)
    return lambda *xs: eager(*xs)


def _race(device: str) -> Workload:
    def fn(x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        smooth[(4,)](x, x.numel(), BLOCK=256)
        return x

    return Workload(by_hand(fn), (torch.rand(1000, device=device),))


def _unmasked(device: str) -> Workload:
    def fn(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        scale[(4,)](x, out, x.numel(), BLOCK=256)
        return out

    return Workload(by_hand(fn), (_surrounded(1000, device),))


def _surrounded(count: int, device: str) -> torch.Tensor:
    # no other tensor begins right after its storage, whatever was freed before
    memory = torch.rand(2 * count).numpy()
    return torch.from_numpy(memory[:count]).to(device)


def _shape(device: str) -> Workload:
    block: list[int] = []

    def fn(*xs: torch.Tensor) -> list[torch.Tensor]:
        sums = []
        for x in xs:
            if not block:
                block.append(triton.next_power_of_2(x.shape[1]))
            sums.append(torch.empty(x.shape[0], device=x.device))
            row_sums[(x.shape[0],)](x, sums[-1], x.shape[1], BLOCK=block[0])
        return sums

    return Workload(by_hand(fn), tuple(torch.rand(8, columns, device=device) for columns in (50, 64, 100)))


def build(device: str, name: str = "race") -> Workload:
    return {"race": _race, "unmasked": _unmasked, "shape": _shape}[name](device)
