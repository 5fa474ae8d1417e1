"""`tracing sql`: a question to recorded runs."""

from __future__ import annotations

from typing import Annotated

import typer

from tracing import store
from tracing.analyze.export import query
from tracing.cli.app import RUNS, Runs, app
from tracing.errors import Problem


@app.command()
def sql(
    words: Annotated[list[str], typer.Argument(metavar='RUN... "SELECT ..."')],
    runs: Runs = RUNS,
) -> None:
    """Ask runs in SQL: tables launches, arguments, passes, divergences (of each run with the first).

    Prints a line a row, its values separated by tabs, under the names of the columns. Needs DuckDB.
    """
    *names, question = words
    if not names:
        raise Problem("a run and a query are needed", '`tracing sql latest "select kernel from launches"`')
    columns, rows = query([store.open_run(name, runs) for name in names], question)
    print("\t".join(columns))
    for row in rows:
        print("\t".join("" if value is None else str(value) for value in row))
