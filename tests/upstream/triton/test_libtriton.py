"""Triton's native library."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.triton import libtriton


def test_the_contract_holds_with_the_installed_versions() -> None:
    libtriton.contract()


def test_a_missing_to_module_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(libtriton.llvm, "to_module")

    with pytest.raises((Broken, AttributeError), match="to_module"):
        libtriton.contract()
