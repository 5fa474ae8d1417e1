"""The command that records a run's case once more: same options, seed and target, and what the run lacks."""

from __future__ import annotations

from pathlib import Path

from tracing.model import Environment, RunInfo


def recording(info: RunInfo, *options: str) -> list[str]:
    """The words of a `tracing run` that repeats a recording, under torchrun if it was a job's.

    options -- what is to be different: "--keep-inputs", ...
    """
    words = ["tracing", "run", case_of(info), *options]
    if info.seed:
        words += ["--seed", str(info.seed)]
    if is_virtual(info.environment):
        words += ["--target", target_of(info.environment)]
    if info.world_size > 1:
        job = ["torchrun", f"--nproc-per-node={info.world_size}", "-m"]
        return [*job, *words, "--rank-aware"]
    return words


def case_of(info: RunInfo) -> str:
    """A recorded case as `tracing run` takes it: the path of its file, and its options behind a colon."""
    name = Path(info.path).stem + "+"
    return f"{info.path}:{info.case.removeprefix(name)}" if info.case.startswith(name) else info.path


def target_of(environment: Environment) -> str:
    """What kernels were compiled for, as `--target` takes it: "sm_90", "gfx942"."""
    backend, _, rest = environment.target.partition(":")
    arch = rest.partition(":")[0]
    return f"sm_{arch}" if backend == "cuda" else arch


def is_virtual(environment: Environment) -> bool:
    """Whether a run was recorded without a GPU."""
    return environment.device == "virtual GPU"
