"""What commands print is data: square brackets in it are no markup."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console

import tracing
from tracing.cli.app import err, out

SOURCES = sorted(Path(tracing.__file__).parent.rglob("*.py"))
MARKUP = re.compile(r"from_markup|rich\.markup|markup=True|\[/\](?!\")")


@pytest.mark.parametrize("console", [out, err])
def test_a_console_prints_square_brackets_unchanged(
    console: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    console.print("[bold]kernel[/] [7]")

    captured = capsys.readouterr()
    assert captured.out + captured.err == "[bold]kernel[/] [7]\n"


def test_no_source_builds_markup() -> None:
    lines = [(path.name, line) for path in SOURCES for line in path.read_text().splitlines()]

    assert [one for one in lines if MARKUP.search(one[1])] == []
