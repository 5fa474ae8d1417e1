"""The kernels that Inductor writes."""

from __future__ import annotations

from tracing.upstream.inductor import generated_kernels


def test_the_contract_holds_with_the_installed_versions() -> None:
    generated_kernels.contract()
