"""`scaled_dot_product_attention` by its parts: these have float64, and round as kernels of attention do.

Those multiply in the dtype of their inputs and compute all else in float32. So of inputs in 16 bits, the
weights and the gradient of the scores are rounded to 16 bits, and the scores are not.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from tracing.upstream.contract import require

_FUSED = F.scaled_dot_product_attention
_NARROW = (torch.float16, torch.bfloat16)


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """[*, Q, E] what `scaled_dot_product_attention` gives; it drops weights by `aten::native_dropout`.

    The parameters are those of torch.
    """
    device = query.device.type
    if torch.is_autocast_enabled(device):
        chosen = torch.get_autocast_dtype(device)
        query, key, value = (one.to(chosen) for one in (query, key, value))
    if enable_gqa:
        key, value = (one.repeat_interleave(query.size(-3) // one.size(-3), -3) for one in (key, value))
    with torch.autocast(device, enabled=False):
        scores = _scores(query, key, scale)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        weights = torch.ops.aten._safe_softmax(scores, -1)  # 0 in rows without a key
        if dropout_p:
            weights = torch.native_dropout(weights, dropout_p, True)[0]
        result: torch.Tensor = weights.to(value.dtype) @ value
        return result


def _scores(query: torch.Tensor, key: torch.Tensor, scale: float | None) -> torch.Tensor:
    narrow = query.dtype
    if narrow in _NARROW:
        query, key = query.float(), key.float()
    scores = query @ key.mT * (scale or 1 / math.sqrt(query.size(-1)))
    if narrow in _NARROW and scores.requires_grad:
        scores.register_hook(lambda gradient: gradient.to(narrow).float())  # type: ignore[no-untyped-call, unused-ignore]
    return scores


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    x = torch.linspace(-1, 1, 64).reshape(1, 4, 4, 4).requires_grad_()
    y = x.detach()[:, :2] + 1
    mask = torch.tensor([True, True, False, True]).expand(4, 4)
    settings: list[dict[str, Any]] = [
        {"attn_mask": mask}, {"attn_mask": mask.float()}, {"is_causal": True, "scale": 0.3}
    ]  # fmt: skip
    for given in settings:
        own, known = (function(x, y, y, **given, enable_gqa=True) for function in (attention, _FUSED))
        require(torch.allclose(own, known, atol=1e-5), "attention by its parts")
        left, right = (torch.autograd.grad(one.sum(), x)[0] for one in (own, known))
        require(torch.allclose(left, right, atol=1e-5), "gradients of attention by its parts")
    half = x.bfloat16()
    narrow = attention(half, half, half, dropout_p=1e-9)
    require(torch.allclose(narrow.float(), attention(x, x, x), atol=0.05), "attention in 16 bits")
