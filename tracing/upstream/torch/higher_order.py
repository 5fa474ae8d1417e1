"""Higher-order operators: FlexAttention in operators of ATen, for where nothing compiles it; scans."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch

from tracing.upstream.contract import require

# torch._higher_order_ops.flex_attention is the operator: it hides the module of that name
_module = import_module("torch._higher_order_ops.flex_attention")
DENSE: Mapping[str, Callable[..., Any]] = {
    "flex_attention": _module.sdpa_dense,
    "flex_attention_backward": _module.sdpa_dense_backward,
}
# Asks whether the tensors are on a GPU: only there `combine_mode="pointwise"` becomes a kernel.
ASSOCIATIVE_SCAN = "torch._higher_order_ops.associative_scan"


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    forward = [*inspect.signature(DENSE["flex_attention"]).parameters]
    require(forward[:5] == ["query", "key", "value", "score_mod", "block_mask"], "FlexAttention's arguments")
    require(forward[-2] == "score_mod_other_buffers", "what a score_mod of FlexAttention captures")
    backward = [*inspect.signature(DENSE["flex_attention_backward"]).parameters]
    require(backward[-2] == "score_mod_other_buffers", "what a score_mod captures, in the backward pass")
    x = torch.ones(1, 1, 2, 4)
    mask = (None, lambda b, h, q, k: q >= 0)
    result = DENSE["flex_attention"](x, x, x, lambda score, b, h, q, k: score, mask, 1.0, {})
    require(torch.equal(result[0], x), "FlexAttention of equal values")
    require(
        getattr(import_module(ASSOCIATIVE_SCAN), "associative_scan", None), "associative_scan in its module"
    )
