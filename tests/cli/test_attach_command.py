"""`tracing attach` without PID: one process is chosen, or the candidates are listed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tracing.attach.processes import Compiler
from tracing.cli.app import app
from tracing.cli.debug import attach


@pytest.mark.parametrize("tracer", [0, 7])
def test_processes_that_could_be_meant_are_listed_with_the_error(
    monkeypatch: pytest.MonkeyPatch, tracer: int
) -> None:
    two = [Compiler(pid, f"python {pid}.py", worker=False, tracer=tracer, now=None) for pid in (11, 12)]
    monkeypatch.setattr(attach, "compilers", lambda: two)

    ended = CliRunner().invoke(app, ["attach"])

    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "tracing: 2 processes have Triton loaded, and none waits for gdb" in ended.stderr
    assert "python 11.py" in ended.stderr and "python 12.py" in ended.stderr


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_process_that_does_not_exist_or_has_no_triton_is_no_answer(more: list[str]) -> None:
    unknown, without = (
        CliRunner().invoke(app, ["attach", pid, *more]) for pid in ("4194305", str(os.getppid()))
    )

    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert "tracing: there is no process 4194305" in unknown.stderr
    assert (without.exit_code, without.stdout) == (2, "")
    assert "tracing: process" in without.stderr


def test_without_a_process_the_error_says_how_to_start_one_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attach, "compilers", list)

    ended = CliRunner().invoke(app, ["attach"])

    assert ended.exit_code == 2 and "TRACING_STOP=" in ended.stderr
    named = ended.stderr.partition("PYTHONPATH=")[2].split()[0]
    assert (Path(named) / "sitecustomize.py").is_file()
