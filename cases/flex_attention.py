"""Attention with a user-defined score function and mask, forward and backward.

Options: mask = full, causal, window or document; score = none or alibi; kernels; dtype; batch, heads, tokens,
width; window, the number of preceding tokens that a token attends to; documents, of equal length; backward.

The kernels are the Triton templates of torch's FlexAttention (kernels=template), or those into which Inductor
fuses the same function written out in operators (kernels=operators): smaller, and without the templates' own
faults. The first are the default on a GPU, the second without, where the virtual GPU executes both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from tracing import Workload

T = torch.Tensor
Mask = Callable[[T, T, T, T], T]
Score = Callable[[T, T, T, T, T], T]


def build(
    device: str,
    mask: Literal["full", "causal", "window", "document"] = "causal",
    score: Literal["none", "alibi"] = "alibi",
    dtype: Literal["float32", "float16", "bfloat16", "float64"] = "float32",
    batch: int = 1,
    heads: int = 2,
    tokens: int = 0,  # 0: 1024 on a GPU, 32 without
    kernels: Literal["", "template", "operators"] = "",
    width: int = 64,
    window: int = 16,
    documents: int = 4,
    backward: bool = True,
) -> Workload:
    tokens = tokens or (32 if device == "cpu" else 1024)
    mask_mod = masks(tokens, window, documents, device)[mask]
    score_mod = scores(heads, device)[score]
    shape = (batch, heads, tokens, width)
    q, k, v = (torch.randn(shape, dtype=getattr(torch, dtype), device=device) for _ in range(3))
    for tensor in (q, k, v):
        tensor.requires_grad_(backward)
    kernels = kernels or ("operators" if device == "cpu" else "template")
    if kernels == "operators":
        return Workload(
            lambda q, k, v: written_out(q, k, v, score_mod, mask_mod), (q, k, v), backward=backward
        )
    blocks = create_block_mask(mask_mod, None, None, tokens, tokens, device=device)
    return Workload(
        lambda q, k, v: flex_attention(q, k, v, score_mod=score_mod, block_mask=blocks),
        (q, k, v),
        backward=backward,
    )


def masks(tokens: int, window: int, documents: int, device: str) -> dict[str, Mask]:
    """Masks: functions of batch, head, query and key; True if the query attends to the key."""
    document = torch.arange(tokens, device=device) * documents // tokens
    return {
        "full": lambda b, h, q, k: k >= 0,
        "causal": lambda b, h, q, k: q >= k,
        "window": lambda b, h, q, k: (q >= k) & (q - k <= window),
        "document": lambda b, h, q, k: (q >= k) & (document[q] == document[k]),
    }


def scores(heads: int, device: str) -> dict[str, Score]:
    """Score functions: of the score, and of batch, head, query and key."""
    slope = torch.exp2(-8.0 * torch.arange(1, heads + 1, device=device) / heads)
    return {
        "none": lambda score, b, h, q, k: score,
        "alibi": lambda score, b, h, q, k: score + slope[h] * (k - q),
    }


def written_out(q: T, k: T, v: T, score_mod: Score, mask_mod: Mask) -> T:
    """The same function in operators; every query must attend to at least one key."""
    sizes = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    index = [torch.arange(n, device=q.device).view(-1, *[1] * (3 - i)) for i, n in enumerate(sizes)]
    score = score_mod(q @ k.mT * q.shape[-1] ** -0.5, *index)
    score = score.masked_fill(~mask_mod(*index), float("-inf"))
    return torch.softmax(score, -1).to(v.dtype) @ v
