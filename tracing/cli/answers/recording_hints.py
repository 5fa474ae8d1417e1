"""The commands to type that record the program of a run once more."""

from __future__ import annotations

from pathlib import Path
from shlex import join

from msgspec.structs import replace

from tracing import store
from tracing.analyze.runs.outcomes import died
from tracing.analyze.runs.recorded_steps import options_of, steps_on_disk
from tracing.analyze.runs.recording_commands import (
    command,
    elsewhere,
    recording,
    recording_call,
    with_variables,
)
from tracing.cli.app import RUNS
from tracing.store.runs import folder_of_runs


def record_command(run: store.Run, *options: str) -> str:
    """The command that records a run's program once more, with further options, or the call in its code."""
    return command_without_folder(run, *options, *below(run))


def command_without_folder(run: store.Run, *options: str) -> str:
    """As `record_command`, without the option that names the folder of runs."""
    return recording_call(run.info, *options) if run.info.kind == "code" else join(recording(run, *options))


def keep_inputs(run: store.Run, *options: str) -> str:
    """The command that records a run of one process once more, its steps if it has some, with contents."""
    return record_command(run, *options, "--keep-inputs", *_held(run), *options_of(steps_on_disk(run)))


def _held(run: store.Run) -> tuple[str, ...]:
    # what it holds in memory is lost when it dies
    return ("--keep-memory", "0") if died(run) else ()


def judge_command(run: store.Run) -> str:
    """The command that records a run once more, with all that `tracing judge` reads, and judges it."""
    if run.info.kind == "code":
        return f"{keep_inputs(run, '--graph-passes')}; tracing judge {latest(run)}"
    return record_command(run, "--judge", *_held(run), *options_of(steps_on_disk(run)))


def keep_inputs_of_ranks(run: store.Run) -> str:
    """The command that records each rank of a job once more, into a run of its own, with contents."""
    words = recording(run, "--keep-inputs", *below(run))
    return join(word for word in words if word != "--rank-aware")


def all_ranks(run: store.Run) -> str:
    """The command that records all ranks of a job, two if it had one, into one run, and compares them."""
    if run.info.kind == "code":
        return recording_call(run.info, "--rank-aware")
    info = replace(run.info, world_size=max(2, run.info.ranks_started))
    recorded = join([*with_variables(run), *elsewhere(info), *command(info, *below(run))])
    return f"{recorded}; tracing ranks {latest(run)}"


def latest(run: store.Run) -> str:
    """The words that name the run which `record_command` makes."""
    return join(["latest", *below(run)])


def below(run: store.Run) -> list[str]:
    """The option that records into, or reads, the folder of a run; [] if it is the default."""
    return runs_option(folder_of_runs(run.path), absolute=bool(elsewhere(run.info)))


def runs_option(folder: Path, *, absolute: bool) -> list[str]:
    """The option that names a folder of runs; [] if it is the default.

    absolute -- a program runs in another directory
    """
    if absolute:
        return ["--runs", str(folder.absolute())]
    return [] if folder.absolute() == RUNS.absolute() else ["--runs", str(folder)]
