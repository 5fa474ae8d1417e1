"""`tracing export`: recorded runs as files that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracing import store
from tracing.analyze.export import write_parquet
from tracing.cli.app import RUNS, Runs, app, out


@app.command()
def export(
    names: Annotated[list[str], typer.Argument(metavar="RUN...")],
    parquet: Annotated[Path, typer.Option("--parquet", metavar="DIR", help="Write a Parquet file a table.")],
    runs: Runs = RUNS,
) -> None:
    """Export runs as tables: launches, arguments, passes, divergences (of each run with the first)."""
    for file in write_parquet([store.open_run(name, runs) for name in names], parquet):
        out.print(str(file), markup=False)
