"""Runs as tables, for questions that nobody foresaw: launches, their arguments, compiler passes, divergences.

DuckDB holds the tables, answers SQL and writes Parquet, which Spark and pandas read. It is an optional
dependency: without it this module says how to get it. Rows go to it through files, so memory does not grow
with a run; about 30 µs a launch.

Parquet that was written before is queried where it lies, also on an object store: of each file what a query
needs is read, and no more.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from tracing.analyze.comparison import Comparison
from tracing.errors import Problem
from tracing.model import KernelArg
from tracing.store import Run
from tracing.store.remote import filesystem, inside, is_remote

Rows: TypeAlias = Iterator[Mapping[str, object]]

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "launches": {
        "run": "varchar", "rank": "integer", "index": "bigint", "kernel": "varchar", "hash": "varchar",
        "target": "varchar", "grid": "integer[]", "num_warps": "integer", "num_stages": "integer",
        "num_ctas": "integer", "constants": "map(varchar, varchar)", "stream": "bigint", "device": "varchar",
        "phase": "varchar", "finished": "boolean",
    },
    "arguments": {
        "run": "varchar", "rank": "integer", "launch": "bigint", "position": "integer", "name": "varchar",
        "declared": "varchar", "dtype": "varchar", "shape": "bigint[]", "stride": "bigint[]",
        "storage": "bigint", "value": "varchar", "before": "varchar", "after": "varchar",
        "modified": "boolean",
        "l1": "double", "nan": "bigint", "inf": "bigint", "writer": "varchar",
    },
    "passes": {
        "run": "varchar", "kernel": "varchar", "hash": "varchar", "target": "varchar", "index": "integer",
        "stage": "varchar", "name": "varchar", "pipeline": "varchar", "changed": "boolean",
        "ended": "boolean",
        "wall_ms": "double",
    },
    "divergences": {
        "run": "varchar", "reference": "varchar", "rank": "integer", "kind": "varchar", "index": "bigint",
        "kernel": "varchar", "argument": "varchar", "position": "integer", "a": "varchar", "b": "varchar",
        "producer": "varchar", "producer_index": "bigint", "operator": "varchar", "may_follow": "boolean",
    },
}  # fmt: skip


@contextmanager
def tables(runs: Sequence[Run], names: Iterable[str] = COLUMNS, written: Sequence[str] = ()) -> Iterator[Any]:
    """A DuckDB connection with the tables of these names, filled from all runs.

    written -- folders and addresses with tables that `write_parquet` wrote, whose rows are there, too

    "divergences" compares each run with the first. Raises Problem where DuckDB, or what reads an address, is
    not installed, and if a table is missing.
    """
    connection = _connection(written)
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        try:
            for name in names:
                sources = [_filled(name, runs, Path(folder))] if runs else []
                sources += [_parquet(written, name)] if written else []
                rows = " union all by name ".join(f"select * from {one}" for one in sources)
                _execute(connection, f"create {'table' if runs else 'view'} {name} as {rows}")
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


def _filled(name: str, runs: Sequence[Run], folder: Path) -> str:
    file = folder / f"{name}.ndjson"
    with file.open("wb") as out:
        for row in _ROWS[name](runs):
            out.write(msgspec.json.encode(row) + b"\n")
    kinds = ", ".join(f"'{column}': '{kind}'" for column, kind in COLUMNS[name].items())
    return f"read_json('{file}', format = 'newline_delimited', columns = {{{kinds}}})"


def _parquet(folders: Sequence[str], name: str) -> str:
    return f"read_parquet([{', '.join(_quoted(inside(folder, f'{name}.parquet')) for folder in folders)}])"


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"


def query(
    runs: Sequence[Run], sql: str, written: Sequence[str] = ()
) -> tuple[list[str], list[tuple[object, ...]]]:
    """The names of a query's columns, and its rows; fills the tables that the query names.

    written -- as for `tables`

    Raises Problem, with what DuckDB says of it, if it is not valid.
    """
    with tables(runs, [name for name in COLUMNS if name in sql.lower()], written) as connection:
        try:
            result = connection.execute(sql)
        except _duckdb().Error as error:
            names = "; ".join(f"{name}({', '.join(columns)})" for name, columns in COLUMNS.items())
            raise Problem(str(error).split("\n\n")[0], f"the tables are {names}") from None
        return [column[0] for column in result.description or ()], result.fetchall()


def write_parquet(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write every table as a Parquet file into a folder, which is made; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    with tables(runs) as connection:
        files = [folder / f"{name}.parquet" for name in COLUMNS]
        for name, file in zip(COLUMNS, files, strict=True):
            connection.execute(f"copy {name} to {_quoted(str(file))} (format parquet, compression zstd)")
    return files


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError:
        raise Problem(
            "duckdb is not installed, and tables need it", "install it: `pip install 'debug-triton[sql]'`"
        ) from None


def _launches(runs: Sequence[Run]) -> Rows:
    for run, rank, launch in _all(runs):
        kernel = launch.kernel
        yield {
            "run": run.name, "rank": rank, "index": launch.index, "kernel": kernel.name, "hash": kernel.hash,
            "target": kernel.target, "grid": launch.grid, "num_warps": kernel.num_warps,
            "num_stages": kernel.num_stages, "num_ctas": kernel.num_ctas, "constants": kernel.constants,
            "stream": launch.stream, "device": launch.device, "phase": launch.phase,
            "finished": launch.finished,
        }  # fmt: skip


def _arguments(runs: Sequence[Run]) -> Rows:
    for run, rank, launch in _all(runs):
        for position, arg in enumerate(launch.args):
            place = {"run": run.name, "rank": rank, "launch": launch.index, "position": position}
            yield place | _argument(arg)


def _argument(arg: KernelArg) -> dict[str, object]:
    meta, known = arg.tensor, arg.after or arg.before
    return {
        "name": arg.name, "declared": arg.declared, "dtype": meta and meta.dtype,
        "shape": meta and meta.shape,
        "stride": meta and meta.stride, "storage": arg.storage,
        "value": None if meta or arg.value is None else str(arg.value),
        "before": arg.before and arg.before.bits, "after": arg.after and arg.after.bits,
        "modified": arg.modified, "l1": known and known.l1, "nan": known and known.nan,
        "inf": known and known.inf, "writer": arg.writer,
    }  # fmt: skip


def _passes(runs: Sequence[Run]) -> Rows:
    for run in runs:
        for one in run.passes():
            compiled = one.compilation
            yield {
                "run": run.name, "kernel": compiled.kernel_name, "hash": compiled.hash,
                "target": compiled.target, "index": one.index, "stage": one.stage, "name": one.name,
                "pipeline": one.pipeline, "changed": one.changed, "ended": one.after is not None,
                "wall_ms": one.wall_ms,
            }  # fmt: skip


def _divergences(runs: Sequence[Run]) -> Rows:
    for run in runs[1:]:
        for found in Comparison(runs[0], run):
            producer = found.producer
            yield {
                "run": run.name, "reference": runs[0].name, "rank": found.rank, "kind": found.kind,
                "index": found.index, "kernel": found.kernel_name, "argument": found.argument,
                "position": found.position, "a": found.a, "b": found.b,
                "producer": producer and producer.kernel_name, "producer_index": producer and producer.index,
                "operator": found.operator, "may_follow": found.may_follow,
            }  # fmt: skip


def _all(runs: Sequence[Run]) -> Iterator[tuple[Run, int, Any]]:
    for run in runs:
        for process in run.processes():
            known = run.signatures(process)
            for row in run.rows(process):
                if row.line.signature not in known:
                    what = f"{run.path} is damaged: there is no signature {row.line.signature}"
                    raise Problem(what, "copy the run again, or record it again")
                yield run, int(process.rsplit("-", 2)[1]), run.joined(row, *known[row.line.signature])


_ROWS: Mapping[str, Callable[[Sequence[Run]], Rows]] = {
    "launches": _launches, "arguments": _arguments, "passes": _passes, "divergences": _divergences,
}  # fmt: skip
