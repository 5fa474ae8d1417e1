"""The console of answers."""

from __future__ import annotations

import io

import pytest

from tracing.cli.answers.terminal import SafeConsole


@pytest.mark.parametrize("columns", ["0", "80"])
def test_a_width_of_0_is_none(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    console = SafeConsole(file=io.StringIO())
    console.print("an answer")

    assert console.file.getvalue() == "an answer\n"  # type: ignore[attr-defined]
    assert console.width == 80
