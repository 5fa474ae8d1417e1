"""Dynamo's compiles of frames, as they happen and in its caches."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.torch import frame_compiles


def test_the_contract_holds_with_the_installed_versions() -> None:
    frame_compiles.contract()


def test_a_compile_without_its_number_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_compiles.convert_frame, "_compile", lambda code: None)

    with pytest.raises(Broken, match="compile_id"):
        frame_compiles.contract()
