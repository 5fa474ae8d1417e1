"""The device that Inductor generates code for."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.inductor import device as inductor_device


def test_the_contract_holds_with_the_installed_versions() -> None:
    inductor_device.contract()


def test_a_missing_set_driver_to_gpu_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(inductor_device.triton_helpers, "set_driver_to_gpu")

    with pytest.raises((Broken, AttributeError), match="set_driver_to_gpu"):
        inductor_device.contract()
