"""Leaves of nested containers."""

from __future__ import annotations

from tracing.upstream.torch import pytrees


def test_the_contract_holds_with_the_installed_versions() -> None:
    pytrees.contract()
