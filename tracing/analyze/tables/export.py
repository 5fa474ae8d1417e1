"""Query runs as tables in SQL, and write them as Parquet for other tools.

DuckDB holds the tables, answers SQL and writes Parquet, which Spark and pandas read. It is an optional
dependency: without it the error names the package. Rows are passed in files, so memory does not grow
with a run; about 1.5 µs a launch for the table of launches, 30 µs for that of arguments.

Existing Parquet is queried without a copy, also on an object store: a query reads only the parts of a file
that it needs.
"""

from __future__ import annotations

import importlib
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import msgspec

from tracing.analyze.tables.anonymous import Anonymous
from tracing.analyze.tables.launch_table import RowChange, launch_table, quoted
from tracing.analyze.tables.rows import COLUMNS
from tracing.analyze.tables.tables import ROWS
from tracing.errors import Problem
from tracing.store import Run
from tracing.store.remote import filesystem, inside, is_remote


@contextmanager
def tables(
    runs: Sequence[Run],
    names: Iterable[str] = COLUMNS,
    written: Sequence[str] = (),
    changed: RowChange = lambda row: row,
) -> Iterator[Any]:
    """A DuckDB connection with the tables of these names, filled from all runs.

    written -- folders and addresses with tables that `write_parquet` wrote; their rows are included
    changed -- returns the replacement of a row

    "divergences" compares each run with the first. Raises Problem if DuckDB, or the package that reads an
    address, is not installed, and if a table is missing.
    """
    runs = named_apart(runs)
    connection = _connection(written)
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        try:
            for name in names:
                sources = [_filled(name, runs, Path(folder), changed)] if runs else []
                sources += [f"select * from {_parquet(written, name)}"] if written else []
                rows = " union all by name ".join(sources)
                # launches are joined for the columns that a query names
                kind = "table" if runs and name != "launches" else "view"
                _execute(connection, f"create {kind} {name} as {rows}")
            yield connection
        finally:
            connection.close()


def _connection(addresses: Sequence[str]) -> Any:
    connection = _duckdb().connect()
    remote = {one.partition("://")[0]: one for one in addresses if is_remote(one)}
    known: set[str] = set()
    for files in map(filesystem, remote.values()):
        if not known & (kinds := {files.protocol} if isinstance(files.protocol, str) else {*files.protocol}):
            connection.register_filesystem(files)
        known |= kinds
    return connection


def _execute(connection: Any, sql: str) -> None:
    try:
        connection.execute(sql)
    except _duckdb().Error as error:
        raise Problem(
            f"the tables cannot be read: {str(error).splitlines()[0]}",
            "write them: `tracing export RUN --parquet DIR`",
        ) from None


def _filled(name: str, runs: Sequence[Run], folder: Path, changed: RowChange) -> str:
    if name == "launches":
        return launch_table(runs, COLUMNS[name], folder, changed)
    file = folder / f"{name}.ndjson"
    with file.open("wb") as out:
        for row in ROWS[name](runs):
            out.write(msgspec.json.encode(changed(msgspec.structs.asdict(row))) + b"\n")
    kinds = ", ".join(f"'{column}': '{kind}'" for column, kind in COLUMNS[name].items())
    return f"select * from read_json({quoted(file)}, format = 'newline_delimited', columns = {{{kinds}}})"


def _parquet(folders: Sequence[str], name: str) -> str:
    return f"read_parquet([{', '.join(quoted(inside(folder, f'{name}.parquet')) for folder in folders)}])"


def query(
    runs: Sequence[Run], sql: str, written: Sequence[str] = ()
) -> tuple[list[str], list[tuple[object, ...]]]:
    """The names of a query's columns, and its rows; fills the tables that the query names.

    written -- as for `tables`

    Raises Problem, with DuckDB's message, if it is not valid.
    """
    named = set(re.findall(r"\w+", sql.lower()))
    with tables(runs, [name for name in COLUMNS if name in named], written) as connection:
        try:
            result = connection.execute(sql)
        except _duckdb().Error as error:
            raise Problem(str(error).split("\n\n")[0], _remedy(str(error), named)) from None
        if result is None:
            raise Problem("there is no query", "for example `select name, bits from results`")
        return [column[0] for column in result.description or ()], result.fetchall()


def _remedy(error: str, named: set[str]) -> str:
    # every table if one does not exist, else those that the query names
    shown = COLUMNS if "Table with name" in error else [name for name in COLUMNS if name in named]
    if not shown:
        return f"the tables are {', '.join(COLUMNS)}"
    tables = [f"{name}({', '.join(COLUMNS[name])})" for name in shown]
    return f"the {'table is' if len(tables) == 1 else 'tables are'} {'; '.join(tables)}"


def named_apart(runs: Sequence[Run]) -> list[Run]:
    """Each run once; those with one name have that of the folder above, too: rows name their run."""
    once = {run.path.resolve(): run for run in runs}
    names = Counter(run.name for run in once.values())
    longer = Counter(_with_folder(path) for path in once)
    apart = []
    for path, run in once.items():
        named = copy(run)
        if names[run.name] > 1:
            named.name = _with_folder(path) if longer[_with_folder(path)] == 1 else str(path)
        apart.append(named)
    return apart


def _with_folder(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def write_parquet(runs: Sequence[Run], folder: Path, *, anonymous: bool = False) -> list[Path]:
    """Write every table as a Parquet file into a new folder; returns the files.

    anonymous -- without paths, and without the names of hosts, users and runs

    Raises Problem if DuckDB is not installed, before the folder is made.
    """
    _duckdb()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise Problem(f"{folder} is a file", "name a folder: `--parquet DIR`") from None
    runs = named_apart(runs)
    changed: RowChange = Anonymous(runs).row if anonymous else lambda row: row
    with tables(runs, changed=changed) as connection:
        files = [folder / f"{name}.parquet" for name in COLUMNS]
        for name, file in zip(COLUMNS, files, strict=True):
            try:
                connection.execute(f"copy {name} to {quoted(file)} (format parquet, compression zstd)")
            except _duckdb().IOException as error:
                reason = str(error).splitlines()[0].rpartition(": ")[2]
                raise Problem(
                    f"{file} cannot be written: {reason}", "`--parquet DIR` names another"
                ) from None
    return files


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError:
        raise Problem(
            "duckdb is not installed, and tables need it", "install it: `pip install duckdb`"
        ) from None
