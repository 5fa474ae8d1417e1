"""The random numbers of a seed are those that Triton's functions draw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from planted_kernels import virtual_gpu
from torch._inductor.runtime import triton_helpers

from tracing.judge.fx import random_numbers
from tracing.judge.fx.random_numbers import integers, numbers

COUNT = 1000
SEEDS = [0, 7, -5, 0x9E3779B97F4A7C15 - (1 << 64), (1 << 63) - 1]


@triton.jit
def drawing(seed, uniform, normal, whole, low, high, COUNT: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < COUNT
    own = tl.load(seed)
    tl.store(uniform + at, tl.rand(own, at.to(tl.uint32)), inside)
    tl.store(normal + at, tl.randn(own, at.to(tl.uint32)), inside)
    ends = tl.load(low), tl.load(high)
    tl.store(whole + at, triton_helpers.randint64(own, at.to(tl.uint32), ends[0], ends[1]), inside)


@pytest.fixture(scope="module", autouse=True)
def gpu() -> Iterator[Any]:
    with virtual_gpu() as device:
        yield device


@pytest.mark.parametrize("number", SEEDS)
def test_they_are_those_of_triton(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_numbers, "_AT_ONCE", 300)
    random_numbers.drawn_words.cache_clear()
    seed, low, high = (torch.tensor(one) for one in (number, -3, 1 << 40))
    uniform, normal, whole = torch.empty(COUNT), torch.empty(COUNT), torch.empty(COUNT, dtype=torch.int64)

    drawing[(4,)](seed, uniform, normal, whole, low, high, COUNT, 256)

    assert torch.equal(numbers([COUNT], seed, "rand"), uniform)
    assert torch.equal(integers(-3, 1 << 40, [10, 100], seed), whole.reshape(10, 100))
    torch.testing.assert_close(numbers([COUNT], seed, "randn"), normal, atol=2e-6, rtol=1e-5)
