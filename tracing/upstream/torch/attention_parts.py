"""Attention by its parts: these have float64, and round as kernels of attention do.

Kernels multiply in the dtype of their inputs and compute all else in float32. So of inputs in 16 bits, the
weights and the gradient of the scores are rounded to 16 bits, and the scores are not. In the backward, they
take what the gradients of a row's weights have in common from the result, which is rounded, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad

from tracing.upstream.contract import require

_FUSED = F.scaled_dot_product_attention


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
    if enable_gqa:
        key, value = (one.repeat_interleave(query.size(-3) // one.size(-3), -3) for one in (key, value))
    if is_causal:
        sizes = query.size(-2), key.size(-2)
        attn_mask = torch.ones(sizes, dtype=torch.bool, device=query.device).tril()
    factor = scale or 1 / math.sqrt(query.size(-1))
    with autocast_done(query, key, value) as (query, key, value):
        products = scores(query, key, factor)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            products = products.masked_fill(~attn_mask, -torch.inf)
        elif attn_mask is not None:
            products = products + attn_mask
        return weighed(products, value, dropout_p)


@contextmanager
def autocast_done(*tensors: torch.Tensor) -> Iterator[Sequence[torch.Tensor]]:
    """Yields tensors as autocast, where it is on, converts them; it is off while this is active."""
    device = tensors[0].device.type
    if torch.is_autocast_enabled(device):
        tensors = tuple(one.to(torch.get_autocast_dtype(device)) for one in tensors)
    with torch.autocast(device, enabled=False):
        yield tensors


def scores(query: torch.Tensor, key: torch.Tensor, scale: float) -> torch.Tensor:
    """[*, Q, K] the products of queries, [*, Q, E], and keys, [*, K, E], in float32 or float64."""
    return _applied(_Scores, query, key, scale)[0]


def weighed(
    scores: torch.Tensor, value: torch.Tensor, chance: float = 0.0, *, generated: bool = False
) -> torch.Tensor:
    """[*, Q, E] the sums of values, [*, K, E], weighed by the softmax of scores, [*, Q, K].

    chance    -- that a weight is dropped
    generated -- Inductor writes the kernel of the gradients, and may fuse it with the operator before it
    """
    return _applied(_Weighed, scores, value, chance, generated)[0]


def rounded_anew(gradient: torch.Tensor) -> torch.Tensor:
    """[*] the gradient of a result, in float32 or float64, with a rounding of its own.

    Code that also computes this gradient takes from it, before it is rounded, what the gradients of a row's
    weights have in common.
    """
    # a third has other bits, which are rounded
    return (gradient / 3).to(torch.promote_types(gradient.dtype, torch.float32)) * 3


def _applied(function: type[torch.autograd.Function], *given: Any) -> tuple[torch.Tensor, ...]:
    jvp = forward_ad._current_level >= 0  # it follows no autograd.Function
    result: tuple[torch.Tensor, ...] = (function.forward if jvp else function.apply)(*given)
    return result


class _Scores(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(query: torch.Tensor, key: torch.Tensor, scale: float) -> tuple[torch.Tensor, ...]:
        wide = torch.promote_types(query.dtype, torch.float32)
        return (query.to(wide) @ key.to(wide).mT * scale,)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        query, key, ctx.scale = inputs
        ctx.save_for_backward(query, key)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        query, key = ctx.saved_tensors
        narrow, wide = query.dtype, gradient.dtype
        rounded = gradient.to(narrow).to(wide) * ctx.scale
        of_query = (rounded @ key.to(wide)).to(narrow).sum_to_size(query.shape)
        return of_query, (rounded.mT @ query.to(wide)).to(narrow).sum_to_size(key.shape), None


class _Weighed(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        scores: torch.Tensor, value: torch.Tensor, chance: float, generated: bool
    ) -> tuple[torch.Tensor, ...]:
        # the result, the weights, and which are kept
        weights = torch.ops.aten._safe_softmax(scores, -1)  # 0 in rows without a key
        dropped, kept = weights, weights.new_ones((), dtype=torch.bool)
        if chance:
            dropped, kept = torch.native_dropout(weights, chance, True)
        return dropped.to(value.dtype) @ value, weights, kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        _, value, ctx.chance, ctx.generated = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(value, *output)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        value, result, weights, kept = ctx.saved_tensors
        wide, gradient = weights.dtype, gradients[0]
        factor = kept.to(wide) / (1 - ctx.chance)
        of_value = (weights * factor).to(value.dtype).mT @ gradient
        of_weights = gradient.to(wide) @ value.to(wide).mT * factor
        weighing = rounded_anew(gradient) if ctx.generated else gradient.to(wide)
        in_common = (weighing * result.to(wide)).sum(-1, keepdim=True)
        of_scores = (weights * (of_weights - in_common)).sum_to_size(weights.shape)
        return of_scores, of_value.sum_to_size(value.shape), None, None


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
        left, right = (torch.autograd.grad(one.square().sum(), x)[0] for one in (own, known))
        require(torch.allclose(left, right, atol=1e-5), "gradients of attention by its parts")
    half = x.bfloat16()
    narrow = attention(half, half, half, dropout_p=1e-9)
    require(torch.allclose(narrow.float(), attention(x, x, x), atol=0.05), "attention in 16 bits")
    directional = torch.func.jvp(lambda one: attention(one, y, y, enable_gqa=True), (x,), (x,))[1]
    require(directional.shape == x.shape, "attention in torch.func.jvp")
