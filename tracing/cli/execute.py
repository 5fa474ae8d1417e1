"""`tracing execute`: the program that `tracing debug` and VSCode start; users seldom type it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tracing import store
from tracing.analyze.passes import pass_table as analysis
from tracing.analyze.runs.call_sites import first_launch, launch_origin
from tracing.attach import stop
from tracing.cli.answers import hints
from tracing.cli.answers.failures import LeaveTyper
from tracing.cli.app import RUNS, Runs, app, err, out
from tracing.cli.options.chosen_kernel import chosen_kernel
from tracing.cli.options.derived import open_derived, pass_on_recorded_ir
from tracing.cli.options.named import TargetOption
from tracing.cli.options.program_words import OPTIONS_FIRST, ProgramOrRunCommand, program_of
from tracing.cli.options.trust import Trust
from tracing.errors import Problem
from tracing.model import Compilation, PassRecord
from tracing.model.chips import DEFAULT_TARGET
from tracing.report.launch import kernel_origin_text


@app.command(hidden=True, cls=ProgramOrRunCommand)
def execute(
    words: Annotated[
        list[str],
        typer.Argument(metavar="CASE | FILE.py [ARG]... | -m MODULE [ARG]... | RUN", help=OPTIONS_FIRST),
    ],
    target: TargetOption = DEFAULT_TARGET,
    seed: Annotated[int, typer.Option(help="Seed of torch's random generators.")] = 0,
    kernel: Annotated[str | None, typer.Option(help="As for `tracing debug`.")] = None,
    which: Annotated[str | None, typer.Option("--pass", help="The recorded pass to execute.")] = None,
    stage: Annotated[str | None, typer.Option(help="Stage of that pass.")] = None,
    otherwise: Annotated[str, typer.Option(help="The case to run if FILE is not Python.")] = "",
    trust: Trust = False,
    runs: Runs = RUNS,
) -> None:
    """Run a case or a program once, recording nothing; with --pass, run only that pass of a run."""
    what = words[0]
    if which is not None:
        run = open_derived(what, runs, trust=trust)
        chosen = chosen_kernel(run, kernel)
        passes = analysis.passes_of(run, chosen)
        record = analysis.find_pass(passes, which, stage)
        stop_at = f"tracing debug {shlex.quote(what)} --kernel {chosen.hash} --pass {record.index}"
        run.require_trust(pass_on_recorded_ir(record), f"`{stop_at} --trust`, in VSCode with `--vscode`")
        _replay(run, chosen, passes, record)
        return
    if otherwise and Path(what).is_file() and Path(what).suffix != ".py":
        err.print(f"{what} is not Python: {otherwise} is run instead")
        words = [otherwise]
    program = program_of(words)
    from tracing.program.device import Device
    from tracing.program.plain_run import execute as execute_case
    from tracing.program.plain_run import execute_program

    if program is not None:
        raise LeaveTyper(lambda: execute_program(program, Device(target, select=False)))
    device = Device(target)
    execute_case(device.load(words[0]), device, seed)


def _replay(run: store.Run, chosen: Compilation, passes: Sequence[PassRecord], record: PassRecord) -> None:
    from tracing.compiler.resume import resume, resume_point_before

    others = range(record.index + 1, passes[-1].index + 1)
    point = resume_point_before(record, passes, run.text)
    stop.replays(
        f"pass {record.index} of stage {record.stage} in {run.path}",
        _program(run, chosen),
        record.compilation.kernel_name,
    )
    artefacts = resume(record.compilation, point, last=record.stage, drop=others)
    out.print(artefacts[record.stage])


def _program(run: store.Run, chosen: Compilation) -> tuple[str, ...]:
    try:
        rank, launch = first_launch(run, chosen.hash) or (0, None)
        origin = launch_origin(run, rank, launch) if launch else None
    except Problem as problem:  # launches are damaged; the passes are not
        return (f"the recorded program is not known: {problem.problem}",)
    shown = hints.source_of(run, launch) if launch else ""
    return tuple(kernel_origin_text(chosen.kernel_name, chosen.file, launch, origin, shown))
