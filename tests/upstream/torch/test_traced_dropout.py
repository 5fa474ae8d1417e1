"""Dropout in the graphs that Dynamo traced."""

from __future__ import annotations

from tracing.upstream.torch import traced_dropout


def test_the_contract_holds_with_the_installed_versions() -> None:
    traced_dropout.contract()
