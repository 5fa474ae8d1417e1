"""`tracing check`: which operators of a case an accelerator cannot run."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from tracing import store
from tracing.analyze.runs.graph_checks import check_status, graph_reports
from tracing.cli.answers.kept_answer import keep_answer
from tracing.cli.app import RUNS, VALIDATE, Json, Runs, app, err, out, spinner
from tracing.cli.options.case_or_run import names_case
from tracing.cli.options.check_options import CheckOptions
from tracing.cli.options.completion import case_and_run_names
from tracing.cli.options.named import TargetOption
from tracing.cli.options.opened import open_run
from tracing.cli.options.option_record import with_option_records
from tracing.cli.processes.case_run import begin_case_run
from tracing.errors import Problem
from tracing.model import Outcome
from tracing.model.chips import DEFAULT_TARGET
from tracing.program.case import require_case
from tracing.report.check import check_json, check_text
from tracing.report.findings import uncovered_text


@app.command(rich_help_panel=VALIDATE)
@with_option_records
def check(
    case: Annotated[
        str,
        typer.Argument(
            metavar="CASE|RUN",
            help="A case, or a run whose graphs a backend has checked.",
            autocompletion=case_and_run_names,
        ),
    ],
    options: CheckOptions,
    target: TargetOption = DEFAULT_TARGET,
    seed: Annotated[int, typer.Option(help="Seed of torch's random generators.")] = 0,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Check the graphs of a case against the constraints of an accelerator.

    Each ATen graph after AOTAutograd, forward and backward, is checked, recorded, and executed operator by
    operator in eager, to measure the share of the run time of supported operators. For a run, prints the
    checks that a backend recorded.

    Example: tracing check silu --alignment 8 --dtype float16

    Exit status: 0 if no constraint is violated, 1 if one is, 2 if one cannot be decided for all sizes, names
    a dimension or a Triton kernel that no graph has, or the case failed.
    """
    run = _run(case, options, target, seed, runs)
    reports = list(graph_reports(run))
    if not reports:
        raise Problem(f"{run.path} has no checked graph", "check a case that torch.compile compiles")
    status = check_status(run, reports)
    *graphs, total = check_text(reports)
    uncovered = list(uncovered_text([run]))
    if as_json:
        print(json.dumps(check_json(run, reports, status), indent=2))
    else:
        for line in (*graphs, total, *uncovered):
            out.print(line)
        err.print(str(run.path))
    keep_answer(run, "check", status, [total, *graphs, *uncovered])
    raise typer.Exit(status)


def _run(case: str, options: CheckOptions, target: str, seed: int, runs: Path) -> store.Run:
    # the run that is named, or a new one of the case
    if not names_case(case, runs):
        run = open_run(case, runs)
        if options.given:
            raise Problem(
                f"{run.path} was checked against its own constraints, and not against those that are given",
                "check the case: `tracing check CASE --alignment 8`",
            )
        return run
    require_case(case)
    with spinner("importing torch"):
        path, outcome = _checked(case, options, target, seed, runs)
    if outcome.status == "failed":
        raise Problem(f"the case failed: {outcome.detail}", f"the traceback: `tracing show {path}`")
    return store.Run(path)


def _checked(case: str, options: CheckOptions, target: str, seed: int, runs: Path) -> tuple[Path, Outcome]:
    from tracing.backend.checked_case import check_case

    constraints = options.constraints()
    experiment, writer = begin_case_run(case, target, seed, runs)
    with closing(writer):
        return writer.path, check_case(experiment, writer, constraints, options.own())
