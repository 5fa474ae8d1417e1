"""Commands that replace a tool of LLVM: their words, and exit status 1 for every error, like the tool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from tracing.cli.app import err
from tracing.cli.help_page import HelpCommand
from tracing.errors import Problem
from tracing.program.near_files import near_files

# Settings of such a command. click does not know -h: it would find one in every word that contains an h.
TOOL_WORDS = {"ignore_unknown_options": True, "help_option_names": ["--help"]}


class ToolCommand(HelpCommand):
    """A command whose words are those of a tool; only the whole word -h asks for help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--help" if word == "-h" else word for word in args])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with -h among the options as in that of the other commands."""
        option = self.get_help_option(ctx)
        assert option is not None
        option.opts = ["-h", "--help"]
        try:
            super().format_help(ctx, formatter)
        finally:
            option.opts = ["--help"]


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
