"""`tracing run`: a case under recording hooks."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tracing import store
from tracing.cli import hints
from tracing.cli.app import RECORD, RUNS, Json, Runs, app, err, spinner
from tracing.cli.guard import Killed, guarded
from tracing.cli.judge import JudgedRun, judgement_of
from tracing.cli.passes.derived import open_derived
from tracing.cli.passes.failure import unfinished
from tracing.cli.show import print_run, print_wrong_result
from tracing.cli.winners import print_taken
from tracing.errors import Problem
from tracing.model import KEPT_IN_MEMORY, KEPT_ON_DISK, SCHEMA, Outcome, RunInfo, Selection
from tracing.report.passes import failed_pass_text
from tracing.report.run_json import memory_evidence_json
from tracing.report.text import memory_text
from tracing.store.winners import read_winners

if TYPE_CHECKING:
    from tracing.program.experiment import Experiment
    from tracing.record.run import PassIRWhen


_LINES = 16  # of an error's message that are shown


class DigestsOption(str, Enum):
    """The tensors whose digests are computed."""

    all = "all"
    declared = "declared"
    none = "none"


class OperatorsOption(str, Enum):
    """The facts that are recorded of operators outside of Triton."""

    digests = "digests"
    writers = "writers"
    none = "none"


class PhaseOption(str, Enum):
    """When a kernel is launched."""

    forward = "forward"
    backward = "backward"


class When(str, Enum):
    """When the IR between passes is printed."""

    after = "after"
    during = "during"


class Spill(str, Enum):
    """The kept tensors that are written to disk first."""

    oldest = "oldest"
    largest = "largest"


CaseName = Annotated[
    str,
    typer.Argument(help="A case by name, or the path of a file with build(device); CASE:option=value,..."),
]
Target = Annotated[str, typer.Option(help="What kernels are compiled for where there is no GPU.")]
Seed = Annotated[int, typer.Option(help="Seed of torch's random generators.")]
DigestsOf = Annotated[
    DigestsOption,
    typer.Option(
        help="all: every tensor before a launch, and what it may write after it. "
        "declared: what the kernel reads before and writes after. none: launches only."
    ),
]
Operators = Annotated[
    OperatorsOption,
    typer.Option(
        help="Of operators outside of Triton. writers: what each read, wrote and allocated. "
        "digests: the bits of it, too; waits for the device. none: nothing."
    ),
]
AllowOutOfBounds = Annotated[
    bool,
    typer.Option(
        "--allow-out-of-bounds",
        help="Without a GPU: a kernel that accesses memory outside of its tensors goes on.",
    ),
]
Kernels = Annotated[list[str] | None, typer.Option(help="Record kernels of this name; a glob.")]
Launches = Annotated[str, typer.Option(help="Record these launches, START:STOP.")]
Phases = Annotated[list[PhaseOption] | None, typer.Option(help="Record launches of this phase.")]
Ranks = Annotated[list[int] | None, typer.Option(help="Record launches of this rank.")]
RankAware = Annotated[
    bool, typer.Option("--rank-aware", help="Under torchrun: one run for all ranks of the job.")
]
WinnersPath = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Autotuned kernels take these configurations; `tracing winners` writes it."
    ),
]
KeepOutputs = Annotated[
    bool, typer.Option("--keep-outputs", help="Keep what each launch wrote, as safetensors.")
]
KeepInputs = Annotated[bool, typer.Option("--keep-inputs", help="Keep what each launch read, too.")]
KeepMemory = Annotated[int, typer.Option(help="Bytes of memory for kept tensors.")]
KeepDisk = Annotated[int, typer.Option(help="Bytes of disk for kept tensors.")]
KeepSpill = Annotated[Spill, typer.Option(help="What leaves memory first.")]
TimeLaunches = Annotated[
    bool, typer.Option("--time", help="Take the time of each launch, on the host and on a GPU.")
]
HashFunction = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.py:NAME",
        help="Record what a function of yours gives for each tensor: number, string, bool or None.",
    ),
]
Passes = Annotated[
    bool, typer.Option("--passes/--no-passes", help="Record every compiler pass of every kernel compiled.")
]
PassesIR = Annotated[
    When,
    typer.Option(
        help="IR around each pass. after: the compilations run once more, when the case has ended, and "
        "are checked against its artefacts. during: printed as passes run; compiling takes 1.4-2.2x."
    ),
]
GraphPasses = Annotated[
    bool,
    typer.Option("--graph-passes", help="Record every graph of torch.compile after each pass of Inductor."),
]
CompileOnly = Annotated[
    bool,
    typer.Option(
        "--compile-only",
        help="Compile every kernel for --target and execute none: for Gluon, and for what takes too long "
        "without a GPU. Launches are recorded without digests.",
    ),
]
NoReferee = Annotated[
    bool,
    typer.Option(
        "--no-referee",
        help="Compare with eager by fixed tolerances: without runs in float64 where results differ.",
    ),
]
Judge = Annotated[
    bool,
    typer.Option(
        "--judge",
        help="Then judge each of Inductor's kernels in float64; keeps what launches read and write.",
    ),
]
Show = Annotated[bool, typer.Option("--show", help="Show the run when it has ended.")]


@app.command(rich_help_panel=RECORD)
def run(
    case: CaseName,
    target: Target = "sm_90",
    seed: Seed = 0,
    digests: DigestsOf = DigestsOption.all,
    operators: Operators = OperatorsOption.writers,
    allow_out_of_bounds: AllowOutOfBounds = False,
    kernel: Kernels = None,
    launches: Launches = ":",
    phase: Phases = None,
    rank: Ranks = None,
    rank_aware: RankAware = False,
    winners: WinnersPath = None,
    keep_outputs: KeepOutputs = False,
    keep_inputs: KeepInputs = False,
    keep_memory: KeepMemory = KEPT_IN_MEMORY,
    keep_disk: KeepDisk = KEPT_ON_DISK,
    keep_spill: KeepSpill = Spill.oldest,
    time_launches: TimeLaunches = False,
    hash_fn: HashFunction = None,
    passes: Passes = True,
    ir: PassesIR = When.after,
    graph_passes: GraphPasses = False,
    compile_only: CompileOnly = False,
    no_referee: NoReferee = False,
    judge: Judge = False,
    show: Show = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Run a program and record every kernel launch; check its results against eager.

    The run is a folder: launches with arguments and digests, kernels, compiler passes with their IR,
    results. With --compile-only nothing is executed, and nothing is checked.

    Example: tracing run silu --keep-inputs

    Exit status: 0 if the results agree with eager, 1 if they differ, 2 if the case failed. With --judge also
    1 if a launch is off, and 2 if none could be judged.
    """
    from tracing import environment

    environment.require_compiler()
    announce = guarded(lambda killed: _report_killed(killed, as_json))
    if compile_only:
        _refuse_values(keep_inputs or keep_outputs, time_launches, hash_fn, judge)
        digests = DigestsOption.none
    job = environment.job() if rank_aware else None
    frozen = read_winners(winners) if winners else None
    started = time.perf_counter()
    with spinner("importing torch") as now:
        from tracing.program.device import Device
        from tracing.program.experiment import Experiment
        from tracing.program.variables import Reads
        from tracing.record.graph_passes import graph_passes_recorded
        from tracing.record.launches import LaunchRecorder
        from tracing.record.outputs import Keep
        from tracing.record.run import record
        from tracing.record.selection import of_rank, selection_of
        from tracing.record.user_hash import load_hash_fn
        from tracing.record.winners import Winners

        selection = selection_of(kernel, launches, [p.value for p in phase or ()], rank)
        keep = Keep(keep_inputs or judge, keep_memory, keep_disk, keep_spill.value)
        hashing = load_hash_fn(hash_fn) if hash_fn else None
        device = Device(target, execute=not compile_only)
        with Reads() as reads:
            loaded = device.load(case)
        experiment = Experiment(loaded, device, seed, referee=not no_referee)
        size = environment.world_size() if rank_aware else 1
        info = _info(experiment, digests, operators, size, selection)
        writer = store.create(runs, info, environment.rank(), job)
        announce(writer.path)
        with closing(writer):
            kept = keep if keep_outputs or keep_inputs or judge else None
            recorder = LaunchRecorder(
                writer, digests.value, operators=operators.value, allow_out_of_bounds=allow_out_of_bounds,
                selection=of_rank(selection, environment.rank()), keep=kept, time=time_launches,
                hash_fn=hashing,
            )  # fmt: skip
            taken = Winners(writer, frozen.winners if frozen else ())
            progress = _progress(now, experiment, started)
            when: PassIRWhen | None = ir.value if passes else None
            around = graph_passes_recorded(writer) if graph_passes else nullcontext()
            try:
                outcome = record(
                    experiment, recorder, progress, passes=when, winners=taken, reads=reads, around=around
                )
            except KeyboardInterrupt:
                raise Problem("interrupted", f"the run up to there: `tracing show {writer.path}`") from None
    if frozen:
        print_taken(frozen, info.environment, taken.chosen, taken.unmatched)
    judgement = judgement_of(store.Run(writer.path)) if judge and outcome.status != "failed" else None
    raise typer.Exit(_conclude(outcome, writer.path, show, recorder.hash_failure, as_json, judgement))


def _refuse_values(keep: bool, time_launches: bool, hash_fn: str | None, judge: bool) -> None:
    given = {
        "--judge": judge,
        "--keep-inputs or --keep-outputs": keep,
        "--time": time_launches,
        "--hash-fn": hash_fn is not None,
    }
    for option in (option for option, is_given in given.items() if is_given):
        raise Problem(
            f"{option} asks for what a launch does, and --compile-only executes none",
            "leave one of the two out",
        )


def _info(
    experiment: Experiment,
    digests: DigestsOption,
    operators: OperatorsOption,
    world_size: int,
    selection: Selection,
) -> RunInfo:
    case, environment = experiment.case, experiment.device.environment()
    return RunInfo(
        SCHEMA, case.name, str(case.path), tuple(sys.argv), experiment.seed, store.now(), environment,
        digests.value, world_size, selection, operators.value,
    )  # fmt: skip


def _progress(now: Callable[[str], None], experiment: Experiment, started: float) -> Callable[[str], None]:
    def progress(stage: str) -> None:
        seconds = f"{time.perf_counter() - started:6.1f} s"
        err.print(Text.assemble((seconds, "dim"), f"  {experiment.case.name}: {stage}"))
        now(stage)

    device = experiment.device
    progress(f"recording on the {device.name}, for {device.compiled_for}")
    return progress


def _report_killed(killed: Killed, as_json: bool) -> int:
    # the process that ran the case is gone: what it wrote says in which pass
    from tracing import environment

    if killed.run is None:
        err.print(f"tracing: {killed.signal} ended the process before it had a run")
        return 2
    detail = f"{killed.signal} ended the process"
    for record, reported in unfinished(open_derived(str(killed.run), killed.run.parent)):
        detail = f"{failed_pass_text(record, reported)} ({killed.signal} ended the process)"
    writer = store.RunWriter(killed.run, environment.rank())
    with closing(writer):
        writer.append(outcome := Outcome("failed", detail))
    return _conclude(outcome, killed.run, False, "", as_json, None)


def _further(outcome: Outcome) -> list[str]:
    # what an error says after its first line; what is long is in the run, as is an excerpt of a kernel
    if re.match(r"at \d+:\d+:", outcome.message):
        return []
    lines = [line.rstrip() for line in outcome.message.strip().splitlines()[1:]]
    lines = [line for line in lines if line and line.strip() not in outcome.detail]
    lines = [line for line in lines if "TORCHDYNAMO_VERBOSE" not in line]
    return lines if len(lines) <= _LINES else [f"{len(lines)} more lines of its message are in the run"]


def _conclude(
    outcome: Outcome, path: Path, show: bool, hash_failure: str, as_json: bool, judgement: JudgedRun | None
) -> int:
    run = store.Run(path)
    if show and not as_json:
        print_run(run)
    elif outcome.status != "failed":
        err.print(f"{outcome.status}: {outcome.detail}")
        for line in memory_text(run):
            err.print(line)
        if judgement is None:  # else it prints what leads on
            print_wrong_result(run, err)
    if hash_failure and outcome.status != "failed":
        raise Problem(hash_failure, f"the run, with what it gave up to there: `tracing show {path}`")
    if outcome.status == "failed":
        err.print(f"tracing: the case failed: {outcome.detail}")
        for said in _further(outcome):
            err.print(f"  {said}")
        err.print(f"  the run up to there, and the traceback: `tracing show {path}`")
    status = {"passed": 0, "compiled": 0, "differs": 1}.get(outcome.status, 2)
    if judgement is not None and not as_json:
        judgement.print()
    status = status or (judgement.status if judgement is not None else 0)
    answer: dict[str, object] = {
        "run": str(path),
        "status": status,
        "outcome": outcome.status,
        "detail": outcome.detail,
        "memory_evidence": memory_evidence_json(run),
        "next": hints.of_wrong_result(run) if outcome.status == "differs" and judgement is None else [],
    }
    if judgement is not None:
        answer["judgement"] = judgement.json()
    print(json.dumps(answer, indent=2) if as_json else path)
    return status
