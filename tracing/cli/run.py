"""`tracing run`: a case under recording hooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.status import Status

from tracing import store
from tracing.cli.app import RUNS, Runs, app, err
from tracing.cli.show import print_run
from tracing.errors import Problem
from tracing.model import SCHEMA, Outcome, RunInfo


class Digests(str, Enum):
    """Of which tensors digests are taken."""

    all = "all"
    declared = "declared"
    none = "none"


class Phase(str, Enum):
    """When a kernel is launched."""

    forward = "forward"
    backward = "backward"


class Spill(str, Enum):
    """Which kept tensors are written to disk first."""

    oldest = "oldest"
    largest = "largest"


@app.command()
def run(
    case: Annotated[
        str,
        typer.Argument(
            help="A case by name, or the path of a file with build(device); CASE:option=value,..."
        ),
    ],
    target: Annotated[
        str, typer.Option(help="What kernels are compiled for where there is no GPU.")
    ] = "sm_90",
    seed: Annotated[int, typer.Option(help="Seed of torch's random generators.")] = 0,
    digests: Annotated[
        Digests,
        typer.Option(
            help="all: every tensor before a launch, and what it may write after it. "
            "declared: what the kernel reads before and writes after. none: launches only."
        ),
    ] = Digests.all,
    kernel: Annotated[list[str] | None, typer.Option(help="Record kernels of this name; a glob.")] = None,
    launches: Annotated[str, typer.Option(help="Record these launches, FIRST:BEHIND.")] = ":",
    phase: Annotated[list[Phase] | None, typer.Option(help="Record launches of this phase.")] = None,
    rank: Annotated[list[int] | None, typer.Option(help="Record launches of this rank.")] = None,
    rank_aware: Annotated[
        bool, typer.Option("--rank-aware", help="Under torchrun: one run for all ranks of the job.")
    ] = False,
    keep_outputs: Annotated[
        bool, typer.Option("--keep-outputs", help="Keep what each launch wrote, as safetensors.")
    ] = False,
    keep_inputs: Annotated[
        bool, typer.Option("--keep-inputs", help="Keep what each launch read, too.")
    ] = False,
    keep_memory: Annotated[int, typer.Option(help="Bytes of memory for kept tensors.")] = 1 << 30,
    keep_disk: Annotated[int, typer.Option(help="Bytes of disk for kept tensors.")] = 16 << 30,
    keep_spill: Annotated[Spill, typer.Option(help="What leaves memory first.")] = Spill.oldest,
    time_launches: Annotated[
        bool, typer.Option("--time", help="Take the time of each launch, on the host and on a GPU.")
    ] = False,
    hash_fn: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:NAME",
            help="Record what a function of yours gives for each tensor: number, string, bool or None.",
        ),
    ] = None,
    passes: Annotated[
        bool,
        typer.Option("--passes/--no-passes", help="Record every compiler pass of every kernel compiled."),
    ] = True,
    show: Annotated[bool, typer.Option("--show", help="Show the run when it has ended.")] = False,
    runs: Runs = RUNS,
) -> None:
    """Run a case under recording hooks, and check it against eager.

    Exit status 1 if the compiled result differs from eager, 2 if the case failed.
    """
    from tracing import environment
    from tracing.case import load_case

    environment.require_compiler()
    job = environment.job() if rank_aware else None
    started = time.perf_counter()
    with err.status("importing torch") as status:
        from tracing.record.launches import LaunchRecorder
        from tracing.record.outputs import Keep
        from tracing.record.run import Device, record
        from tracing.record.selection import selection_of
        from tracing.record.user_hash import load_hash_fn

        phases = [p.value for p in phase or ()]
        selection = selection_of(kernel, launches, phases, rank, environment.rank())
        keep = Keep(keep_inputs, keep_memory, keep_disk, keep_spill.value)
        hashing = load_hash_fn(hash_fn) if hash_fn else None
        loaded, device = load_case(case), Device(target)
        info = RunInfo(
            SCHEMA, loaded.name, str(loaded.path), tuple(sys.argv), seed, store.now(), device.environment(),
            digests.value,
        )  # fmt: skip
        writer = store.create(runs, info, environment.rank(), job)
        progress = _progress(status, loaded.name, started)
        progress(f"recording on the {device.name}, for {device.compiled_for}")
        kept = keep if keep_outputs or keep_inputs else None
        recorder = LaunchRecorder(
            writer, digests.value, selection=selection, keep=kept, time=time_launches, hash_fn=hashing
        )
        try:
            outcome = record(loaded, device, seed, recorder, writer, progress, passes)
        finally:
            writer.close()
    if show:
        print_run(store.Run(writer.path))
    elif outcome.status != "failed":
        err.print(f"{outcome.status}: {outcome.detail}", markup=False)
    if recorder.hash_failure and outcome.status != "failed":
        raise Problem(
            recorder.hash_failure, f"the run, with what it gave up to there: `tracing show {writer.path}`"
        )
    _conclude(outcome, writer.path)


def _progress(status: Status, case: str, started: float) -> Callable[[str], None]:
    def progress(stage: str) -> None:
        err.print(f"[dim]{time.perf_counter() - started:6.1f} s[/]  {case}: {stage}")
        status.update(stage)

    return progress


def _conclude(outcome: Outcome, path: Path) -> None:
    if outcome.status == "failed":
        err.print(f"tracing: the case failed: {outcome.detail}", markup=False)
        err.print(f"  the run up to there, and the traceback: `tracing show {path}`", markup=False)
    print(path)
    raise typer.Exit({"passed": 0, "differs": 1, "failed": 2}[outcome.status])
