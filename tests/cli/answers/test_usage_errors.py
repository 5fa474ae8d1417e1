"""A refused command line is one problem and one remedy, in the same style as every other failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tracing.cli.app import app


@pytest.mark.parametrize(
    ("line", "problem", "remedy"),
    [
        ("rnu silu", "there is no command rnu", "nearest: run; `tracing --help` lists all commands"),
        ("vscode", "there is no command vscode", "`make vscode`"),
        ("run --bogus silu", "run has no option --bogus", "`tracing run --help` lists what it takes"),
        ("passes x --line a.py:3", "passes has no option --line", "`tracing line` is a command: "),
        ("compare a b --nan", "compare has no option --nan", "`tracing nan` is a command: "),
        ("list --rns x", "list has no option --rns", "nearest: --runs; "),
        ("compare a", "compare needs B", "`tracing compare --help`"),
        ("compare a b c", "compare: unexpected extra argument", "`tracing compare --help`"),
        ("run silu --ir before", "--ir: 'before' is not one of 'after', 'during'", "`tracing run --help`"),
        ("repeat silu --times 1", "--times ", "`tracing repeat --help`"),
        ("run silu --seed", "run: --seed requires an argument", "`tracing run --help`"),
        ("run --steps", "run: --steps requires an argument", "`tracing run --help`"),
        ("passes x --pass", "passes: --pass requires an argument", "`tracing passes --help`"),
        ("run silu --keep-memory 3x", "--keep-memory: '3x' is no size", "`tracing run --help`"),
    ],
)
def test_a_refused_command_line_says_what_was_found_and_what_to_type(
    line: str, problem: str, remedy: str
) -> None:
    done = CliRunner().invoke(app, line.split())

    assert done.exit_code == 2
    first, second = done.stderr.splitlines()
    assert first.startswith(f"tracing: {problem}")
    assert second.strip().startswith(remedy)


def test_without_a_command_the_help_is_printed() -> None:
    done = CliRunner().invoke(app, [])

    assert done.exit_code == 2
    assert "Record: run a program" in done.stderr


def test_a_misspelt_file_is_answered_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernel.ll").write_text("define void @f() { ret void }\n")
    monkeypatch.chdir(tmp_path)

    tool = CliRunner().invoke(app, ["llc", "-mtriple=nvptx64-nvidia-cuda", "-mcpu=sm_90", "kernle.ll"])

    assert (tool.exit_code, "nearest: kernel.ll" in tool.stderr) == (1, True), tool.stderr
