"""The launch point of compiled kernels."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.triton import compiled_kernel


def test_the_contract_holds_with_the_installed_versions() -> None:
    compiled_kernel.contract()


def test_a_missing_launch_metadata_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(compiled_kernel.CompiledKernel, "launch_metadata")

    with pytest.raises((Broken, AttributeError), match="launch_metadata"):
        compiled_kernel.contract()
