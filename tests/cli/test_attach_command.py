"""`tracing attach` without PID: one process is chosen, or the candidates are listed."""

from __future__ import annotations

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
