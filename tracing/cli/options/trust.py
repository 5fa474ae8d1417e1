"""`--trust`: the user's consent to execute code of a run that another user recorded or altered."""

from __future__ import annotations

from typing import Annotated

import typer

from tracing import store
from tracing.cli.app import err

Trust = Annotated[
    bool,
    typer.Option("--trust", help="Execute code of the run although you did not record it here."),
]


def consenting(run: store.Run, trust: bool) -> store.Run:
    """The run; with `trust`, executing code of a foreign run is reported instead of refused."""
    if trust:
        run.consent = lambda executed: err.print(f"executing {executed}")
    return run
