"""Build the command that records a run's case once more, with its options, seed and target."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from tracing.errors import Problem, page
from tracing.model import Environment, ReadVariable, RunInfo
from tracing.model.redaction import REDACTED
from tracing.store import Run
from tracing.store.other_settings import is_set, other_settings
from tracing.store.program_words import repeated_words

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
    """The command line that records a run's case once more, with the variables that the case read.

    options -- options to add or change: "--keep-inputs", ...

    Raises Problem for code that `tracing.recording()` surrounds.
    """
    return [*with_variables(run), *elsewhere(run.info), *command(_repeated(run.info), *options)]


def recording_call(info: RunInfo, *options: str) -> str:
    """What records the code of a run once more: 'tracing.recording(keep_inputs=True) in train.py'.

    options -- as of `recording`
    """
    arguments = []
    for i, option in enumerate(options):
        if not option.startswith("--"):
            continue
        name = option.removeprefix("--").replace("-", "_")
        following = options[i + 1] if i + 1 < len(options) else "--"
        if following.startswith("--"):
            value = "False" if name.startswith("no_") and name != "no_virtual_gpu" else "True"
            name = name.removeprefix("no_") if value == "False" else name
        else:
            value = following if following.isdecimal() else json.dumps(following)
        arguments.append(f"{name}={value}")
    return f"tracing.recording({', '.join(arguments)}) in {Path(info.path).name}"


def command(info: RunInfo, *options: str) -> list[str]:
    """The command line of a `tracing run` that repeats a recording, under torchrun if it was a job."""
    return [*info.torchrun, "tracing", "run", *_what_ran(info, *options, *_settings(info))]


def elsewhere(info: RunInfo) -> list[str]:
    """The `env` prefix that runs a program in its working directory; empty if it is the current one."""
    there = info.kind == "program" and info.folder != str(Path.cwd())
    return ["env", "-C", info.folder] if there else []


def what_ran(info: RunInfo, *options: str) -> list[str]:
    """The arguments of a command that is proposed: a case, then options, or options, then a program."""
    return _what_ran(_repeated(info), *options)


def _what_ran(info: RunInfo, *options: str) -> list[str]:
    if info.kind == "program":
        return [*options, *info.program]
    return [case_of(info), *options]


def _repeated(info: RunInfo) -> RunInfo:
    return replace(info, program=tuple(repeated_words(info.program, info.folder)))


def seed_of(info: RunInfo, otherwise: int | None = None) -> list[str]:
    """The option for the seed of a run, unless it is the default; a program's default is none.

    otherwise -- the seed of a program that had none; None: none
    """
    seed = info.seed if info.seed is not None or info.kind == "case" else otherwise
    is_default = not seed if info.kind == "case" else seed is None
    return [] if is_default else ["--seed", str(seed)]


def _settings(info: RunInfo) -> list[str]:
    words = seed_of(info)
    words += ["--mode", info.mode] if info.mode else []
    if is_virtual(info.environment):
        words += ["--target", target_of(info.environment)]
    elif info.environment.device == "CPU":
        words += ["--no-virtual-gpu"]
    typed = info.argv[: len(info.argv) - len(info.program)]  # without the options of a program itself
    words += [option for option in ("--allow-out-of-bounds",) if option in typed]
    return [*words, "--rank-aware"] if info.world_size > 1 else words


def require_recordable(info: RunInfo) -> None:
    """Raise Problem for a run that no command can record once more."""
    if info.kind == "code":
        raise Problem(
            f"what `tracing.recording()` surrounds in {info.path} cannot be recorded by a command",
            "record it there with `tracing.recording(keep_inputs=True)`",
        )
    if REDACTED in info.program:
        raise Problem(
            f"an argument of {info.program[0]} was not recorded: its name says that it is secret",
            "record the program yourself with `--keep-inputs`",
        )


def with_variables(run: Run) -> list[str]:
    """The `env` prefix that sets the variables which the case of a run read to their recorded values.

    It does not name those that were not set, and are not set in this process.
    """
    needed = variables(run)
    others = [name for name, value in needed.items() if value is None and is_set(name)]
    unset = [word for name in others for word in ("-u", name)]
    set_ = [f"{name}={value}" for name, value in needed.items() if value is not None]
    return ["env", *unset, *set_] if unset or set_ else []


def variables(run: Run) -> dict[str, str | None]:
    """The variables that the case of a run read, and settings of torch and Triton that are others now.

    None: not set. Without those that torchrun sets, and those that name a file, a folder or a device.
    """
    by_name = {one.name: one.value for one in run.records(ReadVariable) if not one.redacted}
    by_name = other_settings(run.info.environment) | by_name
    return {name: value for name, value in by_name.items() if not _is_of_a_job(name)}


def _is_of_a_job(name: str) -> bool:
    return name in _OF_A_JOB or name.startswith(_OF_JOBS)


def case_of(info: RunInfo) -> str:
    """A recorded case as `tracing run` takes it: the path of its file, and its options after a colon.

    Raises Problem for the run of a program.
    """
    if info.kind != "case":
        raise Problem(
            f"the run of {info.case} is of a program: no part of it can be executed by itself",
            f"for this question it must be a case, a file with build(device): {page('docs/case.md')}",
        )
    name = Path(info.path).stem + "+"
    return f"{info.path}:{info.case.removeprefix(name)}" if info.case.startswith(name) else info.path


def target_of(recorded: Environment) -> str:
    """The target of the kernels, as `--target` takes it: "sm_90", "gfx942"."""
    backend, _, rest = recorded.target.partition(":")
    arch = rest.partition(":")[0]
    return f"sm_{arch}" if backend == "cuda" else arch


def is_virtual(recorded: Environment) -> bool:
    """True if a run was recorded on the virtual GPU."""
    return recorded.virtual
