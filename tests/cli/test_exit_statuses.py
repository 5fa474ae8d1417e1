"""However a command fails, its exit status is 2 and it prints one message; 1 says that something differs."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from commands import DATA
from handmade.records import new_run
from rich.table import Table

from tracing.backend.checked_case import check_case
from tracing.cli.answers.failures import reported
from tracing.cli.answers.terminal import SafeConsole
from tracing.errors import Problem, message
from tracing.guards.guarded_case import record_guards
from tracing.model import Outcome
from tracing.program.case import load_case
from tracing.program.device import Device
from tracing.program.experiment import Experiment


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class OfACase(BaseException):
    pass


def failed(error: BaseException) -> tuple[int, str]:
    """The exit status of a command that raises, and what it prints."""
    said = io.StringIO()
    with pytest.raises(typer.Exit) as ended, reported(SafeConsole(file=said, soft_wrap=True, markup=False)):
        raise error
    return ended.value.exit_code, said.getvalue()


@pytest.mark.parametrize(
    "error",
    [
        Problem("it is damaged", "copy it"), SystemExit(0), SystemExit(None), SystemExit(1), KeyError("x"),
        IndexError(), ValueError(), RecursionError(), MemoryError(), EOFError(), OfACase(), Unspeakable(),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), OSError(28, "No space left on device", "x"),
        FileNotFoundError(2, "no", "x"), ValueError("half \ud800 \x1b]0;owned\x07"), AssertionError("[/b]"),
    ],
    ids=repr,
)  # fmt: skip
def test_every_failure_is_one_message_and_exit_status_2(error: BaseException) -> None:
    status, said = failed(error)

    assert status == 2
    assert said.startswith("tracing: ")
    assert "Traceback" not in said
    assert "\x1b" not in said


def test_an_interruption_is_none_of_the_answers() -> None:
    assert failed(KeyboardInterrupt())[0] == 130


def test_statuses_of_commands_pass() -> None:
    for status in (0, 1, 2):
        assert failed(typer.Exit(status))[0] == status


def test_the_traceback_of_an_unforeseen_exception_is_printed_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRACING_TRACEBACK", "1")

    failed(KeyError("x"))

    assert "Traceback" in capsys.readouterr().err


def test_an_exception_whose_message_raises_has_one_all_the_same() -> None:
    assert message(Unspeakable()) == "its message cannot be had: RuntimeError"
    assert message(ValueError("\ud800")) == r"\ud800"


@pytest.mark.parametrize(
    "answer", [lambda *case: check_case(*case, (), ()), lambda *case: record_guards(*case, "eager")]
)
def test_a_case_whose_exception_has_no_message_has_failed_all_the_same(
    answer: Callable[..., Outcome], tmp_path: Path
) -> None:
    case = f"{DATA / 'raises.py'}:mute=true"
    with contextlib.closing(new_run(tmp_path)) as writer:
        outcome = answer(Experiment(load_case(case), Device("sm_90"), 0), writer)

    said = "Mute: its message cannot be had: RuntimeError (raises.py:13)"
    assert (outcome.status, outcome.detail) == ("failed", said)


@pytest.mark.parametrize("words", [("mlir-translate", "--help"), ("cases",)])
def test_a_pipe_that_nobody_reads_ends_a_command_without_a_message(words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        command = [sys.executable, "-m", "tracing", *words]
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)

    assert (done.returncode, done.stderr) == (2, "")


def test_a_row_of_a_table_is_one_line_in_a_pipe() -> None:
    table = Table(box=None, show_header=False)
    table.add_row("name " * 100)
    console = SafeConsole(file=(said := io.StringIO()))

    console.print(table)
    console.print("name " * 100)

    assert said.getvalue().splitlines()[0].split() == ["name"] * 100
    assert len(said.getvalue().splitlines()) > 2  # text is folded as before
