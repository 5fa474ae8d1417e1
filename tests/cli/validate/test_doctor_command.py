"""`tracing doctor` on a machine without a C++ compiler."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tracing.cli.app import app


def test_a_missing_compiler_is_shown_and_is_no_feature_that_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")

    done = CliRunner().invoke(app, ["doctor"])

    assert done.exit_code == 0, done.output
    assert "slow recording known operators in C++" in done.output
    assert "no C++ compiler: no-such-compiler not in PATH" in done.output
