"""Commands that replace a tool of LLVM: their words, and exit status 1 for every error, like the tool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from tracing.cli.app import err
from tracing.errors import Problem
from tracing.program.near_files import near_files

# Settings of such a command. It has no option -h: click would find one in every word that contains an h.
TOOL_WORDS = {"ignore_unknown_options": True, "help_option_names": ["--help"]}


@contextmanager
def as_a_tool() -> Iterator[None]:
    """While entered, a Problem is printed and ends the command with exit status 1."""
    try:
        yield
    except Problem as problem:
        text, remedy = problem.problem, problem.remedy
    except OSError as error:
        near = near_files(Path(error.filename)) if isinstance(error, FileNotFoundError) else []
        text = f"{error.filename or 'standard output'}: {error.strerror}"
        remedy = f"nearest: {', '.join(near)}" if near else ""
    else:
        return
    err.print(f"tracing: {text}")
    if remedy:
        err.print(f"  {remedy}")
    raise typer.Exit(1)
