"""Triton's interpreter."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.triton import interpreter


def test_the_contract_holds_with_the_installed_versions() -> None:
    interpreter.contract()


def test_a_missing_atomic_cas_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(interpreter.native_interpreter, "atomic_cas")

    with pytest.raises((Broken, AttributeError), match="atomic_cas"):
        interpreter.contract()
