"""The functions that make tensors, also if the program has replaced them."""

from __future__ import annotations

import pytest
import torch

from tracing.upstream.torch import constructors


def test_the_contract_holds_with_the_installed_versions() -> None:
    constructors.contract()


def test_a_replacement_of_the_program_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError

    for name in ("arange", "empty", "zeros"):
        monkeypatch.setattr(torch, name, refused)

    constructors.contract()
