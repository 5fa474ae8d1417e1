"""Code that Inductor generates."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.inductor import code as inductor_code


def test_the_contract_holds_with_the_installed_versions() -> None:
    inductor_code.contract()


def test_a_missing___call___breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(inductor_code.CompiledFxGraph, "__call__")

    with pytest.raises((Broken, AttributeError), match="__call__"):
        inductor_code.contract()
