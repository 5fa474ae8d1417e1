"""The `tracing` command. Exit status as diff(1): 0 nothing found, 1 a difference, 2 no answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status

from tracing import store
from tracing.analyze.divergence import first_divergence
from tracing.errors import Problem
from tracing.model import SCHEMA, Outcome, RunInfo
from tracing.report import text

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help=__doc__,
    rich_markup_mode="rich",
)
out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

Runs = Annotated[Path, typer.Option("--runs", help="Folder that holds the runs.")]
RUNS = Path("runs")


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
    case: Annotated[str, typer.Argument(help="A case by name, or the path of a file with build(device).")],
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

        phases = [p.value for p in phase or ()]
        selection = selection_of(kernel, launches, phases, rank, environment.rank())
        keep = Keep(keep_inputs, keep_memory, keep_disk, keep_spill.value)
        loaded, device = load_case(case), Device(target)
        info = RunInfo(
            SCHEMA, loaded.name, str(loaded.path), tuple(sys.argv), seed, store.now(), device.environment(),
            digests.value,
        )  # fmt: skip
        writer = store.create(runs, info, environment.rank(), job)
        progress = _progress(status, loaded.name, started)
        progress(f"recording on the {device.name}, for {device.compiled_for}")
        kept = keep if keep_outputs or keep_inputs else None
        recorder = LaunchRecorder(writer, digests.value, selection=selection, keep=kept)
        try:
            outcome = record(loaded, device, seed, recorder, writer, progress)
        finally:
            writer.close()
    if show:
        _print_run(store.Run(writer.path))
    elif outcome.status != "failed":
        err.print(f"{outcome.status}: {outcome.detail}", markup=False)
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


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="RUN", help='A run by path or name, or "latest".')],
    runs: Runs = RUNS,
) -> None:
    """Show what ran where: versions, kernels, every launch with its arguments and digests."""
    _print_run(store.open_run(name, runs))


def _print_run(opened: store.Run) -> None:
    for line in text.run_text(opened):
        out.print(line)


@app.command("list")
def list_runs(runs: Runs = RUNS) -> None:
    """List the recorded runs, oldest first."""
    for path in store.recorded(runs):
        try:
            out.print(text.summary_text(store.Run(path)))
        except Problem as problem:
            out.print(f"{path.name}  {problem.problem}", markup=False)


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="RUN")],
    b: Annotated[str, typer.Argument(metavar="RUN")],
    runs: Runs = RUNS,
) -> None:
    """Compare two runs launch by launch: the first that differs, and what is to blame.

    Exit status 0 if all launches are equal, 1 if one differs.
    """
    one, other = store.open_run(a, runs), store.open_run(b, runs)
    for line in text.difference_of_infos(one.info, other.info):
        out.print(line)
    found = first_divergence(one.launches(), other.launches())
    if found is None:
        launches = text.plural(sum(1 for _ in one.launches()), "launch")
        without = [run.name for run in (one, other) if run.info.digests == "none"]
        out.print(
            f"equal: {launches}, " + (f"no digests in {', '.join(without)}" if without else "every digest")
        )
        return
    for line in text.divergence_text(found):
        out.print(line)
    raise typer.Exit(1)


def main() -> None:
    """Entry point: a Problem or a failing disk becomes one message and exit status 2."""
    try:
        app()
    except Problem as problem:
        _fail(problem.problem, problem.remedy)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _fail(
            f"{place}{error.strerror or error}",
            "check the folder and its disk, or choose another: `--runs DIR`",
        )


def _fail(problem: str, remedy: str) -> None:
    err.print(f"tracing: {problem}", markup=False)
    if remedy:
        err.print(f"  {remedy}", markup=False)
    sys.exit(2)
