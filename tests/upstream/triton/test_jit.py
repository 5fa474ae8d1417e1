"""Functions that Triton compiles."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.triton import jit


def test_the_contract_holds_with_the_installed_versions() -> None:
    jit.contract()


def test_a_missing_make_ir_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(jit.ASTSource, "make_ir")

    with pytest.raises((Broken, AttributeError), match="make_ir"):
        jit.contract()
