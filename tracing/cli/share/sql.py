"""`tracing sql`: an SQL query over recorded runs, on this machine or on an object store."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tracing.analyze.tables.export import query
from tracing.cli.app import RUNS, SHARE, Json, Runs, app
from tracing.cli.options.completion import run_names
from tracing.cli.options.derived import open_derived
from tracing.errors import Problem
from tracing.report.run_json import scalar
from tracing.store.remote import fetched, holds, is_remote


@app.command(rich_help_panel=SHARE)
def sql(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar='RUN|DIR|ADDRESS... "SELECT ..."',
            help="Runs, or what `tracing export --parquet` wrote; then one query.",
            autocompletion=run_names,
        ),
    ],
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Query runs in SQL, with DuckDB.

    The tables: launches, arguments, times, passes, divergences (of each run from the first), results,
    winners (of autotuning) and landmarks (collectives, updates of parameters). Instead of a run, name a
    folder of `tracing export --parquet`, or an address: s3://, gs:// or https://. From Parquet, a query
    reads only what it needs. The records of a remote run, without IR and tensors, are copied first.

    Prints a line with the names of the columns, then one line per row; values are separated by tabs.

    Example: tracing sql demo-sound "select kernel, count(*) from launches group by kernel"

    Exit status: 0, or 2 if the query fails.
    """
    *names, question = words
    if not names:
        raise Problem("a run and a query are needed", '`tracing sql latest "select kernel from launches"`')
    written = [name for name in names if holds(name, "launches.parquet")]
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        opened = [
            fetched(name, Path(folder)) if is_remote(name) else open_derived(name, runs)
            for name in names
            if name not in written
        ]
        columns, rows = query(opened, question, written)
    if as_json:
        values = [[_value(value) for value in row] for row in rows]
        print(json.dumps({"columns": columns, "rows": values}, indent=2))
        return
    print("\t".join(columns))
    for row in rows:
        print("\t".join("" if value is None else str(value) for value in row))


def _value(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return [_value(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _value(one) for name, one in value.items()}
    return scalar(value)
