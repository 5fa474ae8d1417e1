"""The options that select one launch of a run, and the kernel that it must belong to."""

from __future__ import annotations

from typing import Annotated

import typer

from tracing import store
from tracing.analyze.passes.compilations import compilation
from tracing.cli.options.completion import kernel_names
from tracing.errors import Problem
from tracing.store.recorded_launch import RecordedLaunch, near_launched, recorded_launch

ExpectedKernelOption = Annotated[
    str | None,
    typer.Option(
        help="The expected kernel: a name, the first digits of a hash, or NAME#2.",
        autocompletion=kernel_names,
    ),
]
RankOption = Annotated[int | None, typer.Option(help="In the run of a job: the rank of the launch.")]


def chosen_launch(run: store.Run, launch: int, rank: int | None, kernel: str | None) -> RecordedLaunch:
    """The launch that the user selects; raises Problem as `recorded_launch` does."""
    if kernel is not None and "#" in kernel:
        kernel = compilation(run, kernel).hash
    return recorded_launch(run, launch, rank, kernel)


def first_launch(run: store.Run, kernel: str, rank: int | None) -> int:
    """The number of the first launch of a kernel.

    kernel -- a name, the first digits of a hash, or NAME#2
    rank   -- the rank of the launch; None: any

    Raises Problem if the run has no launch of it.
    """
    wanted = compilation(run, kernel).hash if "#" in kernel else kernel
    for one in run.launches(rank):
        if one.kernel_name == wanted or one.kernel.hash.startswith(wanted):
            return one.index
    raise Problem(f"{run.path} has no launch of {kernel}", near_launched(run, kernel))
