"""Build the command that records a run's case once more: its options, seed and target, and what it lacks."""

from __future__ import annotations

from pathlib import Path

from tracing.model import Environment, ReadVariable, RunInfo
from tracing.store import Run

DEFAULT_TARGET = "sm_90"  # of commands that take `--target`

# what torchrun sets, rank by rank
_OF_A_JOB = (
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
)
_OF_JOBS = ("ROLE_", "GROUP_", "TORCHELASTIC_")


def recording(run: Run, *options: str) -> list[str]:
    """The words of a command that records a run's case once more, with the variables that the case read.

    options -- what is to be different: "--keep-inputs", ...
    """
    return [*with_variables(run), *command(run.info, *options)]


def command(info: RunInfo, *options: str) -> list[str]:
    """The words of a `tracing run` that repeats a recording, under torchrun if it was a job's."""
    words = ["tracing", "run", case_of(info), *options]
    if info.seed:
        words += ["--seed", str(info.seed)]
    if is_virtual(info.environment):
        words += ["--target", target_of(info.environment)]
    if info.world_size > 1:
        job = ["torchrun", f"--nproc-per-node={info.world_size}", "-m"]
        return [*job, *words, "--rank-aware"]
    return words


def with_variables(run: Run) -> list[str]:
    """The `env` prefix that sets the variables which the case of a run read to their recorded values."""
    needed = variables(run)
    unset = [word for name, value in needed.items() if value is None for word in ("-u", name)]
    set_ = [f"{name}={value}" for name, value in needed.items() if value is not None]
    return ["env", *unset, *set_] if needed else []


def variables(run: Run) -> dict[str, str | None]:
    """The variables that the case of a run read, None: not set; without those that torchrun sets."""
    by_name = {one.name: one.value for one in _read(run) if not one.redacted}
    return {name: value for name, value in by_name.items() if not _is_of_a_job(name)}


def not_recorded(run: Run) -> tuple[str, ...]:
    """The environment variables that the case of a run read, but whose values were not recorded."""
    return tuple(dict.fromkeys(one.name for one in _read(run) if one.redacted))


def _read(run: Run) -> list[ReadVariable]:
    return list(run.records(ReadVariable))


def _is_of_a_job(name: str) -> bool:
    return name in _OF_A_JOB or name.startswith(_OF_JOBS)


def case_of(info: RunInfo) -> str:
    """A recorded case as `tracing run` takes it: the path of its file, and its options after a colon."""
    name = Path(info.path).stem + "+"
    return f"{info.path}:{info.case.removeprefix(name)}" if info.case.startswith(name) else info.path


def target_of(environment: Environment) -> str:
    """The target of the kernels, as `--target` takes it: "sm_90", "gfx942"."""
    backend, _, rest = environment.target.partition(":")
    arch = rest.partition(":")[0]
    return f"sm_{arch}" if backend == "cuda" else arch


def is_virtual(environment: Environment) -> bool:
    """True if a run was recorded on the virtual GPU."""
    return environment.device == "virtual GPU"
