"""`--trust`: the consent to execute what a run names that somebody else recorded, or altered."""

from __future__ import annotations

from typing import Annotated

import typer

from tracing import store
from tracing.cli.app import err

Trust = Annotated[
    bool,
    typer.Option("--trust", help="Execute what the run names, although you did not record it here."),
]


def consenting(run: store.Run, trust: bool) -> store.Run:
    """The run; with `trust`, what a stranger's run makes this process execute is printed, not refused."""
    if trust:
        run.consent = lambda executed: err.print(f"executing {executed}")
    return run
