"""Runs commands and scripts as a user and `make` do, each in a process of its own."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
ROOT, DATA = TESTS.parent, TESTS / "data"
EDITORS = ("code", "codium", "code-server", "cursor")


def tracing(command: str, *args: str, runs: Path, **env: str) -> subprocess.CompletedProcess[str]:
    # options come before a program, which takes all words after it
    words = [sys.executable, "-m", "tracing", command, "--runs", str(runs), *args]
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, **env}, check=False)


def recorded(case: str, runs: Path, *args: str, passed: bool = True) -> str:
    """The folder of a run; unless `passed`, its results may differ from eager."""
    done = tracing("run", case, *args, runs=runs)
    assert done.returncode in ((0,) if passed else (0, 1)), done.stderr
    return done.stdout.strip().splitlines()[-1]


def make_vscode(folder: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Writes the files of `make vscode` for this environment into a folder."""
    command = [
        sys.executable,
        "-m",
        "vscode.generate",
        "--venv",
        sys.prefix,
        "--folder",
        str(folder),
        *options,
    ]
    # without the editors of this machine, whose extensions decide what is written
    paths = os.environ["PATH"].split(os.pathsep)
    bare = [path for path in paths if not any(Path(path, editor).exists() for editor in EDITORS)]
    own = {"HOME": str(folder), "PATH": os.pathsep.join(bare)}
    variables = {**os.environ, **own, **env}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=variables, check=False)


def script(name: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a script as `make` does, in this process's environment with the given changes."""
    command = [sys.executable, "-m", f"scripts.{name.removesuffix('.py')}", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True
    )


def script_module(name: str) -> Any:
    """A module of scripts/, untyped because tests replace parts of it."""
    return importlib.import_module(f"scripts.{name}")
