"""Attention that a GPU computes in one kernel: the state of its generator."""

from __future__ import annotations

from tracing.upstream.torch import fused_attention


def test_the_contract_holds_with_the_installed_versions() -> None:
    fused_attention.contract()
