"""`tracing report`: runs as one HTML file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from tracing import environment, store
from tracing.analyze.align.alignment import WINDOW
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.passes.pass_table import passes_by_hash
from tracing.analyze.runs.nonfinite import first_nonfinite
from tracing.cli.answers import hints
from tracing.cli.answers.divergence_answer import as_json as divergence_as_json
from tracing.cli.answers.pass_hints import of_passes
from tracing.cli.app import LOOK, RUNS, Json, Runs, app, err, out, progress, spinner
from tracing.cli.compare.nan import commands_of_nan
from tracing.cli.look.passes.derived import open_derived
from tracing.cli.options.completion import run_names
from tracing.cli.options.named import OutputOption, RunArgument
from tracing.cli.options.run_pair import RunPair
from tracing.errors import Problem
from tracing.model import Compilation, Kernel, PassRecord
from tracing.report.html import document
from tracing.report.html.comparison_data import SHOWN, ReportedDivergence
from tracing.report.html.kernel_data import KernelSources
from tracing.report.html.report import ReportedComparison, ReportedRun
from tracing.report.html.report import report as report_of
from tracing.report.nonfinite import nonfinite_json


@app.command(rich_help_panel=LOOK)
def report(
    name: RunArgument,
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="A second run, shown side by side with the first.",
            autocompletion=run_names,
        ),
    ] = None,
    output: OutputOption = None,
    sass: Annotated[
        bool, typer.Option("--sass/--no-sass", help="Disassemble cubins: about 0.3 s for each kernel.")
    ] = True,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Write a run, or the comparison of two, as one HTML file that needs no network and no other file.

    The page joins launches, values, kernels, IR, passes and Python lines. It holds the source code of
    kernels; it holds no tensors. Without --output it is RUN.html in the current directory.

    Example: tracing report silu-20261121-021546 latest -o report.html

    Exit status: 0; of two runs 1 if they differ, 2 if they could be compared in part only; 2 if no report was
    written.
    """
    opened = [_opened(one, runs) for one in (name, other) if one is not None]
    path = output or Path("-".join(one.name for one in opened) + ".html")
    with spinner("reading launches"):
        compared = _compared((opened[0], opened[1])) if len(opened) == 2 else None
    kernels = sum(len({*(k.hash for k in run.records(Kernel))}) for run in opened)
    with progress("reading kernels", kernels) as advance:
        sides = [_side(run, sass, advance) for run in opened]
        index, chunks = report_of(sides, compared)
    size = document.write(path, " | ".join(one.name for one in opened), index, chunks)
    status = _status(compared, index)
    if as_json:
        print(json.dumps(_json(path, size, status, index), indent=2))
    else:
        out.print(str(path))
        err.print(f"{size / 1e6:.1f} MB: open it in a browser")
    raise typer.Exit(status)


def _opened(name: str, runs: Path) -> store.Run:
    try:
        return open_derived(name, runs)
    except Problem as problem:
        run = store.open_run(name, runs)
        err.print(f"without the IR between passes: {problem.problem}")
        return run


def _side(run: store.Run, sass: bool, advance: Any) -> ReportedRun:
    passes = {} if run.underived() and not run.growing else passes_by_hash(run)
    disassembler = environment.nvdisasm() if sass else None
    answer = first_nonfinite(run)
    return ReportedRun(
        run,
        KernelSources(passes, disassembler, partial(_commands, run), advance),
        nonfinite_json(str(run.path), answer, {}, commands_of_nan(run, answer)),
        hints.of_wrong_result(run),
    )


def _commands(run: store.Run, one: Compilation, label: str, passes: Sequence[PassRecord]) -> list[str]:
    died = next((record for record in passes if record.after is None), None)
    if died is not None:
        return hints.of_unfinished(run.path, label, died)
    shown = f"tracing passes {quote(str(run.path))} --kernel {quote(label)}"
    return [shown, *of_passes(run, label, passes)]


def _compared(runs: RunPair) -> ReportedComparison:
    verdict = ComparisonVerdict.of(*runs, WINDOW)
    divergences = iter(verdict)
    shown = [ReportedDivergence(one, divergence_as_json(one, runs)) for one in islice(divergences, SHOWN)]
    for _ in divergences:  # the verdict is complete after the last one
        pass
    return ReportedComparison(verdict, shown)


def _status(compared: ReportedComparison | None, index: dict[str, Any]) -> int:
    if compared is None:
        return 0
    differing = any(one["known"] and not one["equal"] for one in index["comparison"]["kernels"])
    return 1 if differing else compared.verdict.status


def _json(path: Path, size: int, status: int, index: dict[str, Any]) -> dict[str, Any]:
    compared = index["comparison"]
    return {
        "file": str(path),
        "bytes": size,
        "status": status,
        "runs": [
            {"path": one["path"], "kernels": len(one["kernels"]), "launches": one["launches"]["count"]}
            for one in index["runs"]
        ],
        "divergences": compared["found"] if compared else None,
        "findings": [{"tone": one["tone"], "title": one["title"]} for one in index["findings"]],
    }
