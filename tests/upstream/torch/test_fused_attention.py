"""Attention that a GPU computes in one kernel: the state of its generator."""

from __future__ import annotations

from typing import Any

import torch

from tracing.upstream.torch import fused_attention
from tracing.upstream.torch.fused_attention import with_state_on_host

aten = torch.ops.aten


class OnGpu:
    def cpu(self) -> str:
        return "on the CPU"


def test_the_contract_holds_with_the_installed_versions() -> None:
    fused_attention.contract()


def test_the_gradients_of_efficient_attention_read_their_state_on_the_cpu() -> None:
    given: list[Any] = ["grad_out", "query", "key", "value", None, "out", "lse", OnGpu(), OnGpu(), 0.3]

    moved = with_state_on_host(aten._scaled_dot_product_efficient_attention_backward.default, given)

    assert moved == [*given[:7], "on the CPU", "on the CPU", 0.3]
    flash = aten._scaled_dot_product_flash_attention_backward.default
    assert with_state_on_host(flash, given) is given
