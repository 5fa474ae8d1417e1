"""`tracing export`: write recorded runs as files for other tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from rich.text import Text

from tracing import store
from tracing.analyze.align.alignment import WINDOW
from tracing.analyze.compare.first_divergence import Comparison
from tracing.analyze.tables.export import write_parquet
from tracing.cli.answers.divergence_answer import as_json as divergence_as_json
from tracing.cli.app import RUNS, SHARE, Json, Runs, app, out
from tracing.cli.options.completion import run_names
from tracing.cli.options.derived import open_derived
from tracing.cli.options.option_record import with_option_records
from tracing.cli.options.outputs import writable_file, writable_folder
from tracing.errors import Problem
from tracing.report.exports.perfetto import write_perfetto
from tracing.report.exports.sarif import sarif as sarif_of
from tracing.report.exports.tritonparse import write_tritonparse
from tracing.store.cut_files import is_damaged


@dataclass(frozen=True)
class ExportedFiles:
    """The files to write."""

    parquet: Annotated[
        Path | None,
        typer.Option(
            "--parquet",
            metavar="DIR",
            callback=writable_folder,
            help="Folder of a file for each table of `tracing sql`.",
        ),
    ] = None
    perfetto: Annotated[
        Path | None,
        typer.Option(
            "--perfetto", metavar="FILE", callback=writable_file, help="A trace for ui.perfetto.dev."
        ),
    ] = None
    sarif: Annotated[
        Path | None,
        typer.Option(
            "--sarif",
            metavar="FILE",
            callback=writable_file,
            help="Findings at lines, for editors and code hosts.",
        ),
    ] = None
    tritonparse: Annotated[
        Path | None,
        typer.Option(
            "--tritonparse",
            metavar="FILE",
            callback=writable_file,
            help="One run as tritonparse records it.",
        ),
    ] = None
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Of Parquet: remove paths, and the names of hosts, users and runs."),
    ] = False

    def require_fit(self, count: int) -> None:
        """Raise Problem for options that do not fit together, or the number of runs."""
        others = {"--perfetto": self.perfetto, "--sarif": self.sarif, "--tritonparse": self.tritonparse}
        given = [option for option, path in others.items() if path]
        if not (self.parquet or given):
            raise Problem(
                "export needs a format", "give --parquet DIR, --perfetto, --sarif or --tritonparse FILE"
            )
        if self.redact and given:
            raise Problem(f"--redact is about Parquet, and {given[0]} holds names and paths", "leave one out")
        if self.tritonparse and count > 1:
            raise Problem("--tritonparse writes one run", f"{count} runs were given: name one")

    def write(self, opened: Sequence[store.Run]) -> list[Path]:
        """Write them; returns their paths."""
        files = [*write_parquet(opened, self.parquet, anonymous=self.redact)] if self.parquet else []
        if self.perfetto:
            write_perfetto(self.perfetto, opened)
        if self.sarif:
            self.sarif.write_text(json.dumps(sarif_of(opened, _divergences(opened)), indent=2))
        if self.tritonparse:
            write_tritonparse(self.tritonparse, opened[0])
        return files + [one for one in (self.perfetto, self.sarif, self.tritonparse) if one]


@app.command(rich_help_panel=SHARE)
@with_option_records
def export(
    names: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs by path or name.", autocompletion=run_names)
    ],
    asked: ExportedFiles,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Write runs as Parquet, as a Perfetto trace, as SARIF, or as tritonparse's NDJSON.

    The tables of Parquet and SARIF contain no source code and no tensors. SARIF of two runs has their
    divergences, too.

    Example: tracing export demo-sound demo-faulty --parquet tables

    Exit status: 0; 2 if a run cannot be read, or is damaged: what can be read of it is written.
    """
    asked.require_fit(len(names))
    opened = [open_derived(name, runs) for name in names]
    files = asked.write(opened)
    if as_json:
        print(json.dumps({"files": [str(file) for file in files]}, indent=2))
    else:
        out.print(Text("\n".join(map(str, files))))
    _require_undamaged(opened)


def _require_undamaged(opened: Sequence[store.Run]) -> None:
    damaged = [str(run.path) for run in opened if is_damaged(run.path)]
    if damaged:
        problem = f"{' and '.join(damaged)}: damaged, and what is lost is not in the files"
        raise Problem(problem, f"`tracing show {quote(damaged[0])}` says what is lost")


def _divergences(opened: Sequence[store.Run]) -> Iterator[dict[str, Any]]:
    if len(opened) == 2:
        pair = opened[0], opened[1]
        for divergence in (comparison := Comparison(*pair, WINDOW)):
            yield divergence_as_json(divergence, pair)
        comparison.require_undamaged()
