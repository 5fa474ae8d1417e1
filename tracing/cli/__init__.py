"""The `tracing` command: a module or package for each of its commands, and the packages that they share."""

from __future__ import annotations

import sys

from tracing.cli import (  # noqa: F401  # each registers its commands with the application
    attach,
    bisect,
    compare,
    debug,
    doctor,
    execute,
    export,
    judge,
    lit,
    llvm_tools,
    opt,
    passes,
    ranks,
    reduce,
    repeat,
    replay,
    repro,
    resume,
    run,
    show,
    sql,
    swap,
    winners,
)
from tracing.cli.app import app, err
from tracing.errors import Problem


def main() -> None:
    """Entry point: a Problem or a failing disk becomes one message and exit status 2."""
    try:
        app()
    except Problem as problem:
        _fail(problem.problem, problem.remedy)
    except FileNotFoundError as error:
        _fail(f"{error.filename}: there is no such file or folder", "check the path")
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _fail(
            f"{place}{error.strerror or error}",
            "check the folder and its disk, or choose another: `--runs DIR`",
        )


def _fail(problem: str, remedy: str) -> None:
    err.print(f"tracing: {problem}")
    if remedy:
        err.print(f"  {remedy}")
    sys.exit(2)
