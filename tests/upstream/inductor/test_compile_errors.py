"""The errors of Triton's and Inductor's compilers."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.inductor import compile_errors


def test_the_contract_holds_with_the_installed_versions() -> None:
    compile_errors.contract()


def test_an_error_of_other_arguments_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_errors, "OutOfResources", ValueError)

    with pytest.raises((Broken, ValueError)):
        compile_errors.contract()
