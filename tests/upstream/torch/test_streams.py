"""Streams by their handles."""

from __future__ import annotations

from tracing.upstream.torch import streams


def test_the_contract_holds_with_the_installed_versions() -> None:
    streams.contract()
