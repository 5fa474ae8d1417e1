"""GPT-2 small (12 layers of 768, a vocabulary of 50257, sequences of 1024), and a training step of it."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, words: int = 50257) -> None:
        super().__init__()
        self.words = words
        self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, text: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        x = self.tokens(text) + self.places(torch.arange(text.shape[1], device=text.device))
        return F.cross_entropy(
            self.head(self.norm(self.blocks(x))).view(-1, self.words).float(), following.view(-1)
        )


def training_step(layers: int = 12, batch: int = 8) -> Callable[[], None]:
    """A compiled forward and backward in bfloat16 on fresh tokens each time; the gradients are dropped."""
    torch.manual_seed(0)
    model = GPT2(layers).cuda().bfloat16()
    compiled = torch.compile(model)
    texts = torch.randint(model.words, (64, batch, 1024), device="cuda")
    steps = iter(range(10**9))

    def step() -> None:
        i = next(steps) % 64
        compiled(texts[i], texts[i - 1]).backward()
        model.zero_grad(set_to_none=True)

    return step


def optimized_step() -> Callable[[], None]:
    """`host_bound_step` with an optimizer outside of Triton, whose numbers are others at each step."""
    return host_bound_step(optimizer=functools.partial(torch.optim.AdamW, foreach=True))


def host_bound_step(
    mode: str | None = None, optimizer: Callable[..., torch.optim.Optimizer] | None = None
) -> Callable[[], None]:
    """A compiled forward and backward of 12 blocks without a vocabulary: 227 launches, bound by the host.

    mode      -- of torch.compile
    optimizer -- of the parameters; None: the gradients are dropped
    """
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(768, 12) for _ in range(12))).cuda().bfloat16()
    compiled = torch.compile(model, mode=mode)
    x = torch.randn(8, 1024, 768, device="cuda", dtype=torch.bfloat16)
    update = optimizer(model.parameters()).step if optimizer else lambda: None

    def step() -> None:
        compiled(x).sum().backward()
        update()
        model.zero_grad(set_to_none=True)

    return step


def dynamic_step(layers: int = 12, width: int = 256) -> Callable[[int], None]:
    """A forward and backward of blocks that are compiled once for all lengths, which are the argument."""
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(width, 4) for _ in range(layers))).cuda().bfloat16()
    compiled = torch.compile(model, dynamic=True)

    def step(length: int) -> None:
        x = torch.randn(4, length, width, device="cuda", dtype=torch.bfloat16)
        compiled(x).sum().backward()
        model.zero_grad(set_to_none=True)

    for length in (64, 100, 133, 256, 257):
        step(length)
    return step
