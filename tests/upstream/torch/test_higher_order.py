"""FlexAttention as operators of ATen."""

from __future__ import annotations

import torch
from torch.nn.attention.flex_attention import flex_attention

from tracing.upstream.torch import higher_order


def test_the_contract_holds_with_the_installed_versions() -> None:
    higher_order.contract()


def test_the_operators_compute_what_flex_attention_does() -> None:
    q, k, v = torch.randn(3, 1, 2, 8, 16)
    mask = (lambda b, h, i, j: torch.ones((), dtype=torch.bool),)
    for function in (higher_order.DENSE["flex_attention"], higher_order.flex_attention):
        result = function(q, k, v, lambda score, *_: score, mask, 0.25, {})

        torch.testing.assert_close(result[0], flex_attention(q, k, v))
