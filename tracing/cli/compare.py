"""`tracing compare`: the first launch in which two runs differ."""

from __future__ import annotations

from typing import Annotated

import typer

from tracing import store
from tracing.analyze.divergence import first_divergence
from tracing.cli.app import RUNS, Runs, app, out
from tracing.report import text


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="RUN")],
    b: Annotated[str, typer.Argument(metavar="RUN")],
    runs: Runs = RUNS,
) -> None:
    """Compare two runs launch by launch: the first that differs, and what is to blame.

    Exit status 0 if all launches are equal, 1 if one differs.
    """
    one, other = store.open_run(a, runs), store.open_run(b, runs)
    for line in text.difference_of_infos(one.info, other.info):
        out.print(line)
    found = first_divergence(one.launches(), other.launches())
    if found is None:
        launches = text.plural(sum(1 for _ in one.launches()), "launch")
        without = [run.name for run in (one, other) if run.info.digests == "none"]
        out.print(
            f"equal: {launches}, " + (f"no digests in {', '.join(without)}" if without else "every digest")
        )
        return
    for line in text.divergence_text(found):
        out.print(line)
    raise typer.Exit(1)
