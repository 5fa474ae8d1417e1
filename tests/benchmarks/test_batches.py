"""Executing the programs of a launch together on the virtual GPU, as a ratio to one at a time.

Printed, never asserted: machines differ. CPU time of one process, compilation excluded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
from commands import DATA
from torch.nn import functional

from tracing import interpreter
from tracing.program.case import import_file
from tracing.virtual_gpu import virtual_gpu

KERNELS: Any = import_file(DATA / "batched_kernels.py")
WIDTH, HEADS, TOKENS = 768, 12, 128


class Block(torch.nn.Module):
    """A transformer block: attention written in operators, then two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.projection = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[TOKENS, WIDTH] to the same."""
        q, k, v = self.qkv(self.norms[0](x)).view(TOKENS, 3, HEADS, WIDTH // HEADS).permute(1, 2, 0, 3)
        attended = (q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5).softmax(-1) @ v
        x = x + self.projection(attended.transpose(0, 1).reshape(TOKENS, WIDTH))
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x))))


def product() -> Callable[[], torch.Tensor]:
    """The product of two matrices by a hand-written kernel, in float16, in blocks of 64 by 64 by 32."""
    size, block = 1024, 64
    a, b = (torch.randn(size, size).half() for _ in range(2))
    blocks = {"BM": block, "BN": block, "BK": 32, "GROUP": 8}

    def launched() -> torch.Tensor:
        c = torch.empty_like(a)
        KERNELS.product[(triton.cdiv(size, block) ** 2,)](a, b, c, size, size, size, **blocks)
        return c

    return launched


def forward() -> Callable[[], torch.Tensor]:
    """The block in inference."""
    x, block = torch.randn(TOKENS, WIDTH), torch.compile(Block())
    return lambda: block(x).detach()


def forward_and_backward() -> Callable[[], torch.Tensor]:
    """The gradient of the block's input."""
    x, block = torch.randn(TOKENS, WIDTH), torch.compile(Block())
    return lambda: gradient(block, x)


MEASURED: dict[str, Callable[[], Callable[[], torch.Tensor]]] = {
    "matrix product of 1024 x 1024": product,
    "transformer block, forward": forward,
    "transformer block, forward and backward": forward_and_backward,
}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", MEASURED)
def test_programs_together_and_one_at_a_time(name: str) -> None:
    torch.manual_seed(0)
    with virtual_gpu():
        call = MEASURED[name]()
        call()  # compiles
        together, seconds = timed(call)
        with interpreter.one_program_at_a_time():
            single, before = timed(call)

    assert torch.equal(together, single)
    print(f"\n{name}: {before:.1f} s one at a time, {seconds:.2f} s together: {before / seconds:.0f} x")


def gradient(step: Callable[..., torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    leaf = x.clone().requires_grad_()
    step(leaf).square().mean().backward()
    assert leaf.grad is not None
    return leaf.grad


def timed(call: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, float]:
    started = time.process_time()
    result = call()
    return result, time.process_time() - started
