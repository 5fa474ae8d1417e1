"""Notes on what a program is given: options that follow it, and a file that resembles a case."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracing.cli.app import app
from tracing.cli.options.program_words import ProgramCommand


@pytest.mark.parametrize(
    ("words", "noted"),
    [
        (["--times", "3"], {"--times": ""}),
        (["--times=3", "--lr", "1"], {"--times": ""}),
        (["--lr", "1", "--perturb"], {"--perturb": ": tracing repeat --seed 0 --perturb train.py --lr 1"}),
        (["--lr", "1", "--help"], {}),
        (["--seed", "1"], {}),
    ],
)
def test_an_option_of_ours_after_a_program_is_noted(
    words: list[str], noted: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program := tmp_path / "train.py").write_text("parser.add_argument('--seed')\n")
    command = _command("repeat")

    context = command.make_context("repeat", ["--seed", "0", str(program), *words])

    said = capsys.readouterr().err
    assert context.params["words"] == [str(program), *words]
    assert said.splitlines() == [
        f"tracing: {one} goes to {program}; an option of tracing is written before it"
        + before.replace("train.py", str(program))
        for one, before in noted.items()
    ]


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("from tracing import Case, Workload\n\ndef biuld(device): ...\n", True),
        ("from tracing import Workload\n\ndef build(dev): ...\n", True),
        ("from tracing import Workload\n\ndef build(device): ...\n", False),
        ("import tracing\n\ndef build(): ...\n", True),
        ("import tracing\n\ndef main(): ...\n", False),
        ("from other import Workload\n", False),
        ("from tracing import Workload\n:\n", False),  # Python says what is wrong with it
    ],
)
def test_a_file_that_resembles_a_case_and_runs_as_a_program_is_noted(
    text: str, noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "gelu.py").write_text(text)

    _command("run").make_context("run", [str(file)])

    said = capsys.readouterr().err
    assert said == (
        f"tracing: {file} resembles a case, but it defines no build whose first parameter is `device`: "
        "it runs as a program\n"
        if noted
        else ""
    )


def _command(name: str) -> ProgramCommand:
    import typer

    group = typer.main.get_command(app)
    command = group.get_command(None, name)  # type: ignore[attr-defined]
    assert isinstance(command, ProgramCommand)
    return command
