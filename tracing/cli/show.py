"""`tracing show` and `tracing list`: the recorded runs."""

from __future__ import annotations

from typing import Annotated

import typer

from tracing import store
from tracing.cli.app import RUNS, Runs, app, out
from tracing.errors import Problem
from tracing.report import text


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="RUN", help='A run by path or name, or "latest".')],
    runs: Runs = RUNS,
) -> None:
    """Show what ran where: versions, kernels, every launch with its arguments and digests."""
    print_run(store.open_run(name, runs))


def print_run(opened: store.Run) -> None:
    for line in text.run_text(opened):
        out.print(line)


@app.command("list")
def list_runs(runs: Runs = RUNS) -> None:
    """List the recorded runs, oldest first."""
    for path in store.recorded(runs):
        try:
            out.print(text.summary_text(store.Run(path)))
        except Problem as problem:
            out.print(f"{path.name}  {problem.problem}", markup=False)
