"""Dropout as AOTAutograd traces it: by `aten::native_dropout`, which eager calls on a GPU only."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
import torch.nn.functional as F

from tracing.upstream.contract import require, require_parameters
from tracing.upstream.patch import replaced
from tracing.upstream.torch.dynamo import called_functions

_PLAIN, _FUSED = F.dropout, F.scaled_dot_product_attention


def _dropout(
    input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    if inplace or not training or p == 0 or not input.numel():
        return _PLAIN(input, p, training, inplace)
    return torch.native_dropout(input, p, True)[0]


def _attention(
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
    if dropout_p == 0:
        return _FUSED(query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)
    if enable_gqa:
        key, value = (one.repeat_interleave(query.size(-3) // one.size(-3), -3) for one in (key, value))
    scores = query @ key.mT * (scale or 1 / math.sqrt(query.size(-1)))
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = torch.ops.aten._safe_softmax(scores, -1)  # 0 in rows without a key
    return torch.native_dropout(weights, dropout_p, True)[0] @ value


def _of_library(input: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    return _dropout(input, p, train)


# by the names that nodes of Dynamo's graphs have
TRACED_DROPOUT: Mapping[str, Callable[..., torch.Tensor]] = {
    "aten::dropout": _of_library,
    "torch.dropout": _of_library,
    "torch.nn.functional.dropout": _dropout,
    "torch._C._nn.scaled_dot_product_attention": _attention,
}


@contextmanager
def dropout_as_traced() -> Iterator[None]:
    """While active, functions of torch in Python, as multi-head attention, call these functions, too."""
    with replaced(F, "dropout", _dropout), replaced(F, "scaled_dot_product_attention", _attention):
        yield


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    require_parameters(F.dropout, *inspect.signature(_dropout).parameters)

    def program(x: torch.Tensor) -> torch.Tensor:
        x = torch.dropout(F.dropout(x, 0.5), 0.5, True)
        return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

    x = torch.randn(1, 2, 4, 4)
    names = called_functions(program, x)
    require({*names} == TRACED_DROPOUT.keys() - {"aten::dropout"}, f"a graph of dropout, not {names}")
    mask = torch.tensor([True, True, False, True]).expand(4, 4)
    own = _attention(x, x, x, mask, 1e-9)
    known = F.scaled_dot_product_attention(x, x, x, mask)
    require(torch.allclose(own, known, atol=1e-5), "attention that drops nothing")
