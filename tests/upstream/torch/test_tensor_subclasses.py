"""Tensors without memory of their own."""

from __future__ import annotations

from tracing.upstream.torch import tensor_subclasses


def test_the_contract_holds_with_the_installed_versions() -> None:
    tensor_subclasses.contract()
