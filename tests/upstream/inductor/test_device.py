"""The device that Inductor generates code for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.inductor import device as inductor_device


def test_the_contract_holds_with_the_installed_versions() -> None:
    inductor_device.contract()


def test_a_missing_set_driver_to_gpu_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(inductor_device.triton_helpers, "set_driver_to_gpu")

    with pytest.raises((Broken, AttributeError), match="set_driver_to_gpu"):
        inductor_device.contract()


_GUARD = """
import importlib, pkgutil, tracing, tracing.upstream
for module in pkgutil.walk_packages(tracing.upstream.__path__, "tracing.upstream."):
    importlib.import_module(module.name)
from torch._inductor.codegen.common import get_device_op_overrides
print(get_device_op_overrides("cuda").device_guard(0))
"""


def test_imports_leave_inductor_the_code_that_it_writes_for_a_gpu() -> None:
    done = subprocess.run([sys.executable, "-c", _GUARD], capture_output=True, text=True, check=True)

    assert "_DeviceGuard(0)" in done.stdout
