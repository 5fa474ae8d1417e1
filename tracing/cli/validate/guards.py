"""`tracing guards`: graph breaks, guards and recompilations."""

from __future__ import annotations

import json
import sys
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracing import store
from tracing.analyze.runs.frame_compiles import GuardReport, guard_report
from tracing.cli.answers.kept_answer import keep_answer
from tracing.cli.app import RUNS, VALIDATE, Json, Runs, app, err, out, spinner
from tracing.cli.options.completion import case_and_run_names
from tracing.cli.options.named import RecordSeedOption, TargetOption
from tracing.cli.options.opened import open_run
from tracing.cli.options.program_words import OPTIONS_FIRST, ProgramOrRunCommand, program_of, runs_program
from tracing.cli.processes.case_run import begin_case_run, begin_program_run
from tracing.errors import Problem
from tracing.model.chips import DEFAULT_TARGET
from tracing.report.findings import uncovered_text
from tracing.report.guards import frame_text, guards_json, guards_text, summary_text

if TYPE_CHECKING:
    from tracing.program.user_program import UserProgram


@app.command(rich_help_panel=VALIDATE, cls=ProgramOrRunCommand)
def guards(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="CASE | FILE.py [ARG]... | -m MODULE [ARG]... | RUN",
            help=f"A case, a program with its own arguments, or a recorded run. {OPTIONS_FIRST}",
            autocompletion=case_and_run_names,
        ),
    ],
    frame: Annotated[
        str | None, typer.Option(metavar="ID", help="Also print graph and bytecode of one compile: 0/0.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="Backend of torch.compile for a case. Default: its own, or inductor.")
    ] = None,
    target: TargetOption = DEFAULT_TARGET,
    seed: RecordSeedOption = None,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Show graph breaks, guards and recompilations of a case, of any program, or of a recorded run.

    Prints, for each compile by Dynamo, the guards with the guarded objects and the lines that need them, and
    the guard of earlier compiles that failed. Equal graph breaks are printed once.

    `0/1` is the second compile of frame 0, which is one function. A guard that names no object, as one on
    sizes, is listed under `no single object`.

    A program runs as under `python`, to its end or to Ctrl-C.

    Example: tracing guards gated_mlp --frame 0/0

    Exit status: 0 if each frame is compiled once to one graph, 1 with a graph break, a recompilation or a
    limit of them, 2 if nothing was compiled, or the case or the program raised. The exit status of a program
    has no effect.
    """
    with redirect_stdout(sys.stderr if as_json else sys.stdout):  # the program may print
        run = _run(words, backend, target, seed, runs)
    report = guard_report(run)
    if not report.compiles:
        raise Problem(
            f"{run.path} has no compile of a frame",
            "`tracing guards CASE` records those of a case or a program that torch.compile compiles",
        )
    status = report.status
    if frame is not None:
        report = _only(report, frame)
    lines = [
        *(guards_text(report) if frame is None else frame_text(report.compiles[0])),
        *uncovered_text([run]),
    ]
    if as_json:
        print(json.dumps(guards_json(report, str(run.path)) | {"status": status}, indent=2))
    else:
        for line in lines:
            out.print(line)
        err.print(str(run.path))
    keep_answer(run, "guards", status, [summary_text(report), *lines])
    raise typer.Exit(status)


def _run(words: list[str], backend: str | None, target: str, seed: int | None, runs: Path) -> store.Run:
    # the run that is named, or a new one of the case or the program
    if not runs_program(words, runs):
        return open_run(words[0], runs)
    program = program_of(words)
    if program is not None and backend is not None:
        raise Problem("--backend is for a case", "a program names its backends itself; leave it out")
    if program is None:
        return store.Run(_recorded(words[0], backend, target, seed or 0, runs))
    return store.Run(_recorded_program(program, target, seed, runs))


def _only(report: GuardReport, frame: str) -> GuardReport:
    chosen = [one for one in report.compiles if one.facts.compile_id == frame]
    if not chosen:
        known = ", ".join(one.facts.compile_id for one in report.compiles)
        raise Problem(f"there is no compile {frame!r}", f"these are known: {known}")
    return GuardReport(chosen)


def _recorded(case: str, backend: str | None, target: str, seed: int, runs: Path) -> Path:
    with spinner("importing torch"):
        from tracing.guards.guarded_case import record_guards

        experiment, writer = begin_case_run(case, target, seed, runs)
        with closing(writer):
            outcome = record_guards(experiment, writer, backend)
    if outcome.status == "failed":
        raise Problem(f"the case failed: {outcome.detail}", f"the traceback: `tracing show {writer.path}`")
    return writer.path


def _recorded_program(program: UserProgram, target: str, seed: int | None, runs: Path) -> Path:
    # no spinner: it is a thread, and the program numbers its own
    from tracing.guards.guarded_program import record_program_guards

    device, writer = begin_program_run(program, target, seed, runs)
    outcome = record_program_guards(program, device, writer, seed)
    if outcome.status == "failed":
        advice = f"what it compiled until then: `tracing guards {writer.path}`"
        raise Problem(f"the program failed: {outcome.detail}", advice)
    err.print(f"{program.name}: {outcome.detail.partition(';')[0]}")
    return writer.path
