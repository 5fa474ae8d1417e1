"""Optimizers whose state is on the device."""

from __future__ import annotations

from tracing.upstream.torch import optimizers


def test_the_contract_holds_with_the_installed_versions() -> None:
    optimizers.contract()
