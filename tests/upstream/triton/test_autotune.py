"""@triton.autotune."""

from __future__ import annotations

import sys

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.triton import autotune as triton_autotuner


def test_the_contract_holds_with_the_installed_versions() -> None:
    triton_autotuner.contract()


def test_a_missing__bench_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(triton_autotuner.Autotuner, "_bench")

    with pytest.raises((Broken, AttributeError), match="_bench"):
        triton_autotuner.contract()


def test_a_frame_of_this_test_is_not_the_autotuners() -> None:
    assert not triton_autotuner.is_autotuner(sys._getframe())
