"""The `tracing` command: its commands in the groups of `tracing --help`, and the packages that they share."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable

from tracing.attach import fast_imports
from tracing.cli.answers.failures import LeaveTyper
from tracing.cli.answers.terminal import safe_streams
from tracing.cli.app import app
from tracing.program.interrupts import interrupts_kept


def main() -> None:
    """Entry point; `tracing.cli.answers.failures` gives the exit status of a command that fails."""
    fast_imports.switch_on()
    atexit.register(gc.freeze)  # once torch is imported, a last search for cyclic garbage takes 2 s
    with interrupts_kept():
        go_on = _command()
        if go_on is not None:
            atexit.unregister(gc.freeze)  # a program ends as under python
            go_on()


def _command() -> Callable[[], None] | None:
    hook = sys.excepthook  # typer installs its own
    try:
        with safe_streams():
            app()
    except LeaveTyper as left:
        sys.excepthook = hook
        return left.go_on
    return None
