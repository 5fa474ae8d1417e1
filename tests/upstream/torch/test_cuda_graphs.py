"""Capturing into CUDA graphs."""

from __future__ import annotations

from tracing.upstream.torch import cuda_graphs


def test_the_contract_holds_with_the_installed_versions() -> None:
    cuda_graphs.contract()
