"""The `tracing` command: a module or package for each of its commands, and the packages that they share."""

from __future__ import annotations

from tracing.cli import (  # noqa: F401  # each registers its commands with the application
    attach,
    bisect,
    check,
    compare,
    debug,
    diff,
    doctor,
    execute,
    export,
    judge,
    lit,
    llvm_tools,
    minify,
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
from tracing.cli.answers.terminal import make_streams_safe
from tracing.cli.app import app


def main() -> None:
    """Entry point; `tracing.cli.answers.failures` gives the exit status of a command that fails."""
    make_streams_safe()
    app()
