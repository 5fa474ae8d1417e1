"""`tracing export`: write recorded runs as files for other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tracing.analyze.tables.export import write_parquet
from tracing.cli.app import RUNS, SHARE, Json, Runs, app, out
from tracing.cli.look.passes.derived import open_derived
from tracing.cli.options.completion import run_names


@app.command(rich_help_panel=SHARE)
def export(
    names: Annotated[list[str], typer.Argument(metavar="RUN...", autocompletion=run_names)],
    parquet: Annotated[Path, typer.Option("--parquet", metavar="DIR", help="Folder of the files.")],
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Remove paths, and the names of hosts, users and runs."),
    ] = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Write runs as Parquet: one file for each table of `tracing sql`, of all runs.

    No table contains source code or tensors. --redact also removes paths and names.

    Example: tracing export silu-20261121-021546 latest --parquet tables

    Exit status: 0, or 2 if a run cannot be read.
    """
    files = write_parquet([open_derived(name, runs) for name in names], parquet, anonymous=redact)
    if as_json:
        print(json.dumps({"files": [str(file) for file in files]}, indent=2))
        return
    for file in files:
        out.print(Text(str(file)))
