"""`tracing report`: runs as one HTML file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tracing.cli.app import LOOK, RUNS, Json, Runs, app, err, out
from tracing.cli.look.gathered_report import GatheredReport, gathered, open_for_report
from tracing.cli.options.completion import run_names
from tracing.cli.options.opened import open_run
from tracing.cli.options.outputs import OutputFileOption, chosen_output
from tracing.report.html import document
from tracing.store.run_files import file_name

_NAMED = 3  # runs that the name of the file lists


@app.command(rich_help_panel=LOOK)
def report(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…",
            help='A run by path or name, or "latest"; a second one is shown side by side with the first, '
            "and of more there is a table.",
            autocompletion=run_names,
        ),
    ],
    output: OutputFileOption = None,
    sass: Annotated[
        bool, typer.Option("--sass/--no-sass", help="Disassemble cubins: 0.3 s of a core for each kernel.")
    ] = True,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Write a run, or the comparison of several, as one HTML file that needs no network and no other file.

    The page joins launches, values, kernels, IR, passes and Python lines. It holds the source code of
    kernels; it holds no tensors. Of more than two runs it is a table of the kernels that differ.

    Without --output it is, in the current directory, RUN.html; of two runs A-B.html, of three A-B-C.html, and
    of five A-B-C-and-2-more.html.

    Example: tracing report demo-sound demo-faulty -o report.html

    Exit status: 0; of several runs 1 if they differ, 2 if they could be compared in part only; 2 if a run is
    damaged or no report was written.
    """
    opened = [(open_run if len(names) > 2 else open_for_report)(one, runs) for one in names]
    stem = "-".join(file_name(one.name) for one in opened[:_NAMED])
    more = f"-and-{len(opened) - _NAMED}-more" if len(opened) > _NAMED else ""
    path = output or chosen_output(Path(f"{stem}{more}.html"), "--output FILE")
    content = gathered(opened, sass=sass)
    size = document.write(path, content.title, content.index, content.chunks)
    if as_json:
        print(json.dumps(_json(path, size, content), indent=2))
    else:
        out.print(str(path))
        err.print(f"{size / 1e6:.1f} MB: open it in a browser")
    raise typer.Exit(content.status)


def _json(path: Path, size: int, content: GatheredReport) -> dict[str, Any]:
    index = content.index
    compared, table = index["comparison"], index["table"]
    return {
        "file": str(path),
        "bytes": size,
        "status": content.status,
        "runs": [_run_json(one) for one in index["runs"]],
        "divergences": compared["found"] if compared else None,
        "findings": [{"tone": one["tone"], "title": one["title"]} for one in index["findings"]],
        "table": None if table is None else _table_json(table, index["runs"]),
    }


def _run_json(one: dict[str, Any]) -> dict[str, Any]:
    # a table has no kernels and launches of a single run
    known = "launches" in one
    return {
        "path": one["path"],
        "kernels": len(one["kernels"]) if known else None,
        "launches": one["launches"]["count"] if known else None,
        "answers": [_answer_json(each) for each in one["answers"]] if known else None,
    }


def _answer_json(one: dict[str, Any]) -> dict[str, Any]:
    keys = ("name", "command", "asked", "status", "kernel", "launch", "lines", "next")
    return {key: one[key] for key in keys}


def _table_json(table: dict[str, Any], runs: list[dict[str, Any]]) -> dict[str, Any]:
    compared = [
        {"run": run["path"], "status": one["status"], "divergences": one["found"], "first": one["first"]}
        for run, one in zip(runs, table["compared"], strict=True)
    ]
    return {"kernels": table["kernels"], "compared": compared}
