"""Runs a program as Python does and as `tracing run` does, and removes our lines from standard error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProgramOutput:
    """How a program ended, and what it printed."""

    status: int
    stdout: str
    stderr: str


def bare(words: Sequence[str], folder: Path, stdin: str = "") -> ProgramOutput:
    """A program as Python runs it in a folder."""
    return _ended([sys.executable, *words], folder, stdin)


def as_recorded(
    words: Sequence[str], folder: Path, runs: Path, stdin: str = "", *options: str
) -> ProgramOutput:
    """The same while it is recorded; standard error without our lines."""
    command = [sys.executable, "-m", "tracing", "run", "--runs", str(runs), *options, *words]
    ended = _ended(command, folder, stdin)
    lines = ended.stderr.splitlines(keepends=True)
    return ProgramOutput(
        ended.status, ended.stdout, "".join(line for line in lines if not line.startswith("tracing: "))
    )


def _ended(command: list[str], folder: Path, stdin: str) -> ProgramOutput:
    # Triton 3.9 warns of a compile without this variable; its value is the default.
    variables = {**os.environ, "TRITON_DEFAULT_FP_FUSION": "1"}
    done = subprocess.run(
        command, cwd=folder, input=stdin, capture_output=True, text=True, env=variables, check=False
    )
    return ProgramOutput(done.returncode, done.stdout, done.stderr)
