"""`tracing run`: record a case or a program."""

from __future__ import annotations

import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tracing import environment, store
from tracing.cli.answers.failures import LeaveTyper
from tracing.cli.answers.findings import findings_text
from tracing.cli.answers.run_answer import RunAnswer, report_killed
from tracing.cli.app import RECORD, RUNS, Json, Runs, app, err, spinner
from tracing.cli.compare.winners import print_taken
from tracing.cli.narrow.judge import judgement_of
from tracing.cli.options.option_record import with_option_records
from tracing.cli.options.program_words import ProgramArgument, ProgramCommand, program_of
from tracing.cli.options.record_options import RecordOptions
from tracing.cli.options.step_options import StepOptions
from tracing.cli.processes.guard import guarded
from tracing.cli.record.judged_program import judged_afterwards
from tracing.environment import installed_tools
from tracing.errors import Problem
from tracing.model import SCHEMA, Outcome, RunInfo, StepSelection
from tracing.store.winners import read_winners

if TYPE_CHECKING:
    from tracing.program.experiment import Experiment
    from tracing.program.user_program import UserProgram
    from tracing.program.variables import Reads
    from tracing.record.autotuning.winners import Winners
    from tracing.record.launches.launch_recorder import LaunchRecorder
    from tracing.record.recorded_program import RecordedProgram

ShowOption = Annotated[bool, typer.Option("--show", help="Show the run afterwards.")]


@app.command(rich_help_panel=RECORD, cls=ProgramCommand)
@with_option_records
def run(
    words: ProgramArgument,
    options: RecordOptions,
    steps: StepOptions,
    show: ShowOption = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Run a case or any program and record every kernel launch; check a case's results against eager.

    A run is a folder with the launches, their arguments and digests, the kernels, the compiler passes with
    their IR, and the results. With --compile-only nothing is executed or checked.

    A program runs as under `python`: its standard output is unchanged, and messages of `tracing` go to
    standard error.

    Example: tracing run silu --keep-inputs

    Exit status: that of a program. Of a case 0 if the results agree with eager, 1 if they differ, 2 if it
    failed or float64 does not decide. With --judge, where it would be 0, that of `tracing judge`: 1 if
    something is off, 2 if nothing at all could be judged or is checked by eager's results.
    """
    installed_tools.require_compiler()
    program = program_of(words)
    if program is not None:
        _require_readable(program)
    options.selection()  # a malformed one is refused before torch is imported
    shared = options.rank_aware and options.keeps
    if options.rank_aware and options.judge and environment.world_size() > 1:
        every = "--judge is for a run of one process, and --rank-aware records all ranks into one"
        raise Problem(every, "leave one of the two out")
    with _nothing_recorded():  # imports torch
        selected = steps.selection(options.digests_of, shared_tensors=shared)
    if program is None:
        _run_case(words[0], options, selected, show, as_json, runs)
    else:
        _run_program(program, options, selected, show, as_json, runs)


def _run_case(
    case: str, options: RecordOptions, steps: StepSelection, show: bool, as_json: bool, runs: Path
) -> None:
    announce = guarded(lambda killed: report_killed(killed, as_json=as_json))
    options.require_values()
    job = environment.job() if options.rank_aware else None
    frozen = read_winners(options.winners) if options.winners else None
    started = time.perf_counter()
    with spinner("importing torch") as now:
        with _nothing_recorded():
            from tracing.program.device import Device
            from tracing.program.experiment import Experiment
            from tracing.program.variables import Reads
            from tracing.record.autotuning.winners import Winners
            from tracing.record.crash_report import crashes_noted

            recorder_of = _recorder_of(options, steps)
            device = Device(options.target, execute=not options.compile_only)
            device = device.host() if options.no_virtual_gpu else device
            with Reads() as reads:
                loaded = device.load(case)
        experiment = Experiment(
            loaded, device, options.seed or 0, mode=options.mode, referee=not options.no_referee
        )
        info = _info(experiment, options, steps)
        writer = store.create(runs, info, environment.rank(), job)
        announce(writer.path)
        with closing(writer), crashes_noted(writer):
            recorder = recorder_of(writer)
            taken = Winners(writer, frozen.winners if frozen else ())
            progress = _progress(now, experiment, started)
            outcome = _recorded(experiment, recorder, options, progress, taken, reads)
    if frozen:
        print_taken(frozen, info.environment, taken.chosen, taken.unmatched)
    ended = store.Run(writer.path)
    judgement = judgement_of(ended, ended) if options.judge and outcome.status != "failed" else None
    if judgement is not None:
        judgement.keep(ended, ended)
    answer = RunAnswer(ended, outcome, judgement, recorder.hash_failure)
    raise typer.Exit(answer.print(show=show, as_json=as_json))


def _require_readable(program: UserProgram) -> None:
    # before torch is imported, and reported as by Python
    try:
        program.require_readable()
    except (SyntaxError, ValueError) as error:
        traceback.print_exception(error.with_traceback(None))
        err.print("tracing: nothing was recorded")
        raise typer.Exit(1) from None


@contextmanager
def _nothing_recorded() -> Iterator[None]:
    # before the run is created
    try:
        yield
    except KeyboardInterrupt:
        err.print("tracing: interrupted; nothing was recorded")
        raise typer.Exit(130) from None


def _run_program(
    program: UserProgram, options: RecordOptions, steps: StepSelection, show: bool, as_json: bool, runs: Path
) -> None:
    # never returns: the program runs after the command line has ended
    given = {"--show": show, "--json": as_json, "--no-referee": options.no_referee}
    given["--mode"] = bool(options.mode)
    commands = {"--show": "show latest", "--json": "show latest --json"}
    for option in (option for option, is_given in given.items() if is_given):
        later = commands.get(option)
        later = f"{later} --runs {quote(str(runs))}" if later and runs != RUNS else later
        raise Problem(
            f"{option} is for a case, and {program.words[0]} is a program",
            f"leave it out{f', and then ask: `tracing {later}`' if later else ''}",
        )
    options.require_values()
    announce = judged_afterwards() if options.judge else None
    # no spinner: its thread would change the numbers of the program's threads
    # the program may choose another GPU, or fork before it opens one
    with environment.gpu_unopened(), _nothing_recorded():
        recorded = _recorded_program(program, options, steps, runs, announce)
    raise LeaveTyper(recorded.run)


def _recorded_program(
    program: UserProgram,
    options: RecordOptions,
    steps: StepSelection,
    runs: Path,
    announce: Callable[[Path], None] | None,
) -> RecordedProgram:
    # announce -- the run, to a process that judges it afterwards
    job = environment.job() if options.rank_aware else None
    frozen = read_winners(options.winners) if options.winners else None
    from tracing.numerics.undeclared_effects import UndeclaredEffects
    from tracing.program.device import Device
    from tracing.record.autotuning.winners import Winners
    from tracing.record.graphs.graph_passes import graph_passes_recorded
    from tracing.record.recorded_program import RecordedProgram
    from tracing.record.session import Session

    recorder_of = _recorder_of(options, steps)
    virtual = not options.no_virtual_gpu
    device = Device(options.target, execute=not options.compile_only, select=False, virtual=virtual)
    size = environment.world_size() if options.rank_aware else 1
    info = RunInfo(
        SCHEMA, program.name, str(program.path), tuple(sys.argv), options.seed, store.now(),
        device.environment(), options.digests_of, size, options.selection(), options.operators.value,
        kind="program", program=tuple(program.words), folder=str(Path.cwd()), steps=steps,
        job_size=environment.world_size(),
    )  # fmt: skip
    writer = store.create(runs, info, environment.rank(), job)
    if announce is not None:
        announce(writer.path)
    effects = UndeclaredEffects() if options.keep_inputs or options.judge else None  # for `tracing judge`
    session = Session(
        device,
        recorder_of(writer, strict=options.strict),
        passes=options.ir_recorded,
        winners=Winners(writer, frozen.winners if frozen else ()),
        around=[
            *([graph_passes_recorded(writer)] if options.every_graph_pass else []),
            *([effects] if effects is not None else []),
        ],
    )
    judged = announce is not None
    return RecordedProgram(program, session, options.seed, _findings, effects, judged=judged)


def _findings(run: store.Run) -> Iterator[str]:
    # of a program that has ended; the first rank reports them for all
    if environment.rank() == 0:
        yield from (line.plain for line in findings_text(run))


def _recorder_of(options: RecordOptions, steps: StepSelection) -> Callable[..., LaunchRecorder]:
    # reads the options before a run is created: a malformed one leaves no run
    from tracing.record.launches.launch_recorder import LaunchRecorder
    from tracing.record.launches.selection import of_rank
    from tracing.record.launches.user_hash import load_hash_fn

    return partial(
        LaunchRecorder,
        digests=options.digests_of,
        operators=options.operators.value,
        allow_out_of_bounds=options.allow_out_of_bounds,
        selection=of_rank(options.selection(), environment.rank()),
        steps=steps,
        keep=options.kept(),
        time=options.time_launches,
        hash_fn=load_hash_fn(options.hash_fn) if options.hash_fn else None,
    )


def _info(experiment: Experiment, options: RecordOptions, steps: StepSelection) -> RunInfo:
    case, device = experiment.case, experiment.device
    size = environment.world_size() if options.rank_aware else 1
    return RunInfo(
        SCHEMA, case.name, str(case.path), tuple(sys.argv), experiment.seed, store.now(),
        device.environment(), options.digests_of, size, options.selection(), options.operators.value,
        mode=options.mode, steps=steps, job_size=environment.world_size(),
    )  # fmt: skip


def _recorded(
    experiment: Experiment,
    recorder: LaunchRecorder,
    options: RecordOptions,
    progress: Callable[[str], None],
    winners: Winners,
    reads: Reads,
) -> Outcome:
    from tracing.record.graphs.graph_passes import graph_passes_recorded
    from tracing.record.run import record

    writer = recorder.writer
    around = graph_passes_recorded(writer) if options.every_graph_pass else nullcontext()
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
    except Problem as problem:
        recorded = f"what was recorded: `tracing show {writer.path}`"
        raise Problem(problem.problem, "; ".join(filter(None, [problem.remedy, recorded]))) from None
    except KeyboardInterrupt:
        raise Problem("interrupted", f"the run up to this point: `tracing show {writer.path}`") from None


def _progress(now: Callable[[str], None], experiment: Experiment, started: float) -> Callable[[str], None]:
    printed: list[str] = []

    def progress(stage: str) -> None:
        text = f"{time.perf_counter() - started:6.1f} s  {experiment.case.name}: {stage}"
        now(text)  # in place, on a terminal
        kind = re.sub(r"\d+", "", stage)
        if not err.is_terminal and kind not in printed:  # of a count from 0 only what it counts to
            printed.append(kind)
            err.print(Text(re.sub(r"\b0 of (?=\d)", "", text)))

    device = experiment.device
    compiled = f", for {device.compiled_for}" if device.type != "cpu" or device.virtual else ""
    progress(f"recording on the {device.name}{compiled}")
    return progress
