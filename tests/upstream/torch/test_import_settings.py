"""Settings of torch that follow variables which are set after its import."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from torch.utils._config_module import ConfigModule

from tracing import environment
from tracing.program.torch_import import torch_not_imported
from tracing.upstream.torch.import_settings import contract, evaluated_settings


def test_this_torch_keeps_the_contract() -> None:
    contract()


def test_a_module_whose_settings_cannot_be_evaluated_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    module = ModuleType("without_source")
    module.__class__ = ConfigModule
    monkeypatch.setitem(sys.modules, "without_source", module)
    assert evaluated_settings()[1] == ("without_source",)

    with torch_not_imported(), environment.changed({"TORCH_SETTING_OF_A_TEST": "1"}):
        import torch as imported
    assert imported is torch
    assert capfd.readouterr().err == (
        "tracing: TORCH_SETTING_OF_A_TEST may have no effect on without_source, which cannot be evaluated "
        "once more: set it in the shell\n"
    )
