"""Attention by its parts."""

from __future__ import annotations

from tracing.upstream.torch import traced_attention


def test_the_contract_holds_with_the_installed_versions() -> None:
    traced_attention.contract()
