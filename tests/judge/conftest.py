"""A virtual GPU for the tests of a file, and an operator whose random numbers are not computed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from planted_kernels import virtual_gpu

from tracing.judge.traced import given_numbers
from tracing.program.device import Device


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with virtual_gpu() as device:
        yield device


@pytest.fixture
def no_geometric_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge does not compute the numbers that `geometric_` draws."""
    rules = {name: rule for name, rule in given_numbers._RULES.items() if name != "aten::geometric_"}
    monkeypatch.setattr(given_numbers, "_RULES", rules)
