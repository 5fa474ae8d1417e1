"""torch's DebugMode."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.torch import torch_debug_mode


def test_the_contract_holds_with_the_installed_versions() -> None:
    torch_debug_mode.contract()


def test_a_missing_record_triton_kernel_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch_debug_mode.DebugMode, "record_triton_kernel")

    with pytest.raises((Broken, AttributeError), match="record_triton_kernel"):
        torch_debug_mode.contract()
