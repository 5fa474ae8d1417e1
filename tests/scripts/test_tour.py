"""The tour of `make demo`: its steps in order, and one that ends otherwise than it should."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from scripts.pins import Problem
from scripts.tour import STEPS, Step, tour
from tracing.cli.app import COMMANDS


def python(code: str, status: int = 0, **variables: str) -> Step:
    return Step("Title", "Words.", f"python -c {shlex.quote(code)}", status, variables)


def test_steps_run_in_order_with_their_variables_and_long_output_is_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = python("import os; print(os.environ['WHAT'])", WHAT="a value")
    second = python("print('line\\n' * 66); raise SystemExit(1)", status=1)

    tour(tmp_path, (first, second))

    text = capsys.readouterr().out
    assert text.index("1 of 2: Title") < text.index("a value\n") < text.index("2 of 2: Title")
    assert "$ WHAT='a value'" not in text and "$ WHAT=a value" in text
    assert text.count("line\n") == 60 and "... 6 more lines" in text


def test_a_step_that_ends_otherwise_ends_the_tour_with_its_error(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"ended with 1, not 0\n(.|\n)*no such thing"):
        tour(tmp_path, (python("raise LookupError('no such thing')"), python("")))


def test_every_step_names_a_command_that_exists() -> None:
    words = [step.command.split() for step in STEPS]

    assert {one[1] for one in words if one[0] == "tracing"} <= COMMANDS.keys()
    assert [one for one in words if one[0] != "tracing"] == [["python", "-m", "scripts.demo"]]
