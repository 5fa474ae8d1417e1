"""`tracing run`: a case under recording hooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tracing import environment, store
from tracing.cli.answers.run_answer import RunAnswer, report_killed
from tracing.cli.app import RECORD, RUNS, Json, Runs, app, err, spinner
from tracing.cli.judge import judgement_of
from tracing.cli.options.option_record import with_option_records
from tracing.cli.options.record_options import RecordOptions
from tracing.cli.processes.guard import guarded
from tracing.cli.winners import print_taken
from tracing.errors import Problem
from tracing.model import SCHEMA, Outcome, RunInfo
from tracing.store.winners import read_winners

if TYPE_CHECKING:
    from tracing.program.experiment import Experiment
    from tracing.program.variables import Reads
    from tracing.record.launches import LaunchRecorder
    from tracing.record.winners import Winners

CaseName = Annotated[
    str,
    typer.Argument(help="A case by name, or the path of a file with build(device); CASE:option=value,..."),
]
Show = Annotated[bool, typer.Option("--show", help="Show the run when it has ended.")]


@app.command(rich_help_panel=RECORD)
@with_option_records
def run(
    case: CaseName, options: RecordOptions, show: Show = False, as_json: Json = False, runs: Runs = RUNS
) -> None:
    """Run a program and record every kernel launch; check its results against eager.

    The run is a folder: launches with arguments and digests, kernels, compiler passes with their IR,
    results. With --compile-only nothing is executed, and nothing is checked.

    Example: tracing run silu --keep-inputs

    Exit status: 0 if the results agree with eager, 1 if they differ, 2 if the case failed. With --judge also
    1 if a launch is off, and 2 if none could be judged.
    """
    environment.require_compiler()
    announce = guarded(lambda killed: report_killed(killed, as_json=as_json))
    options.require_values()
    job = environment.job() if options.rank_aware else None
    frozen = read_winners(options.winners) if options.winners else None
    started = time.perf_counter()
    with spinner("importing torch") as now:
        from tracing.program.device import Device
        from tracing.program.experiment import Experiment
        from tracing.program.variables import Reads
        from tracing.record.winners import Winners

        recorder_of = _recorder_of(options)
        device = Device(options.target, execute=not options.compile_only)
        with Reads() as reads:
            loaded = device.load(case)
        experiment = Experiment(loaded, device, options.seed, referee=not options.no_referee)
        info = _info(experiment, options)
        writer = store.create(runs, info, environment.rank(), job)
        announce(writer.path)
        with closing(writer):
            recorder = recorder_of(writer)
            taken = Winners(writer, frozen.winners if frozen else ())
            progress = _progress(now, experiment, started)
            outcome = _recorded(experiment, recorder, options, progress, taken, reads)
    if frozen:
        print_taken(frozen, info.environment, taken.chosen, taken.unmatched)
    ended = store.Run(writer.path)
    judgement = judgement_of(ended) if options.judge and outcome.status != "failed" else None
    answer = RunAnswer(ended, outcome, judgement, recorder.hash_failure)
    raise typer.Exit(answer.print(show=show, as_json=as_json))


def _recorder_of(options: RecordOptions) -> Callable[[store.RunWriter], LaunchRecorder]:
    # reads the options before a run is created: a malformed one leaves no run
    from tracing.record.launches import LaunchRecorder
    from tracing.record.selection import of_rank
    from tracing.record.user_hash import load_hash_fn

    return partial(
        LaunchRecorder,
        digests=options.digests_of,
        operators=options.operators.value,
        allow_out_of_bounds=options.allow_out_of_bounds,
        selection=of_rank(options.selection(), environment.rank()),
        keep=options.kept(),
        time=options.time_launches,
        hash_fn=load_hash_fn(options.hash_fn) if options.hash_fn else None,
    )


def _info(experiment: Experiment, options: RecordOptions) -> RunInfo:
    case, device = experiment.case, experiment.device
    size = environment.world_size() if options.rank_aware else 1
    return RunInfo(
        SCHEMA, case.name, str(case.path), tuple(sys.argv), experiment.seed, store.now(),
        device.environment(), options.digests_of, size, options.selection(), options.operators.value,
    )  # fmt: skip


def _recorded(
    experiment: Experiment,
    recorder: LaunchRecorder,
    options: RecordOptions,
    progress: Callable[[str], None],
    winners: Winners,
    reads: Reads,
) -> Outcome:
    from tracing.record.graph_passes import graph_passes_recorded
    from tracing.record.run import record

    writer = recorder.writer
    around = graph_passes_recorded(writer) if options.graph_passes else nullcontext()
    try:
        return record(
            experiment,
            recorder,
            progress,
            passes=options.ir_recorded,
            winners=winners,
            reads=reads,
            around=around,
        )
    except KeyboardInterrupt:
        raise Problem("interrupted", f"the run up to there: `tracing show {writer.path}`") from None


def _progress(now: Callable[[str], None], experiment: Experiment, started: float) -> Callable[[str], None]:
    def progress(stage: str) -> None:
        seconds = f"{time.perf_counter() - started:6.1f} s"
        err.print(Text.assemble((seconds, "dim"), f"  {experiment.case.name}: {stage}"))
        now(stage)

    device = experiment.device
    progress(f"recording on the {device.name}, for {device.compiled_for}")
    return progress
