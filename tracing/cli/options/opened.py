"""Open the run that a command line names; print which it is if that is not obvious."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from tracing import store
from tracing.cli.app import err
from tracing.model import Outcome
from tracing.report.findings import unfinished_text


def open_run(name: str, runs: Path) -> store.Run:
    """Open a run as `store.open_run` does.

    Prints a note if a name means the newest run of a program, and if "latest", or one before it, did not end
    well.
    """
    run = store.open_run(name, runs)
    if not store.is_run(name, runs) and not Path(name).is_dir():
        means = "is" if "~" in name else "has its newest run in"
        err.print(Text.assemble(("note", "yellow"), f": {name} {means} {run.path}"))
    if store.is_latest(name) and not (runs / name).exists() and (ending := _ending(run)):
        err.print(Text.assemble(("note", "yellow"), f": {name} is {run.path}, which {ending}"))
    return run


def _ending(run: store.Run) -> str:
    outcome = next(run.records(Outcome), None)
    if outcome is None:
        return unfinished_text(run)
    if outcome.status == "interrupted":
        return "was interrupted"
    return f"failed: {outcome.detail}" if outcome.status == "failed" else ""
