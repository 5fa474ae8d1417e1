"""The sequence number of the backward pass."""

from __future__ import annotations

from tracing.upstream.torch import autograd


def test_the_contract_holds_with_the_installed_versions() -> None:
    autograd.contract()
