"""Operators in terms of simpler ones."""

from __future__ import annotations

from tracing.upstream.torch import decompositions


def test_the_contract_holds_with_the_installed_versions() -> None:
    decompositions.contract()
