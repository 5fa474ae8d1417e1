"""Attention by its parts."""

from __future__ import annotations

from tracing.upstream.torch import attention_parts


def test_the_contract_holds_with_the_installed_versions() -> None:
    attention_parts.contract()
