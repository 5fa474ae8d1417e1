"""Inductor's templates for tensors on the host; what they compute is in tests/virtual_gpu."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.inductor import gpu_templates


def test_the_contract_holds_with_the_installed_versions() -> None:
    gpu_templates.contract()


def test_a_missing_split_of_the_keys_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(gpu_templates.flex_decoding, "get_split_k")

    with pytest.raises(Broken, match="get_split_k"):
        gpu_templates.contract()
