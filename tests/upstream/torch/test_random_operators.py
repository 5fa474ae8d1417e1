"""Operators that draw random numbers, as functions of uniform ones."""

from __future__ import annotations

from tracing.upstream.torch import random_operators


def test_the_contract_holds_with_the_installed_versions() -> None:
    random_operators.contract()
