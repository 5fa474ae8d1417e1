"""Begin the run of a command that executes a case or a program and does not ask for its launches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tracing import environment, store
from tracing.model import SCHEMA, RunInfo

if TYPE_CHECKING:
    from tracing.program.device import Device
    from tracing.program.experiment import Experiment
    from tracing.program.user_program import UserProgram


def begin_case_run(case: str, target: str, seed: int, runs: Path) -> tuple[Experiment, store.RunWriter]:
    """Load a case for the GPU of this machine, or a virtual one; create its run, which the caller closes."""
    from tracing.program.device import Device
    from tracing.program.experiment import Experiment

    device = Device(target)
    experiment = Experiment(device.load(case), device, seed)
    info = RunInfo(
        SCHEMA, experiment.case.name, str(experiment.case.path), tuple(sys.argv), seed, store.now(),
        device.environment(), "none", operators="none",
    )  # fmt: skip
    return experiment, store.create(runs, info, environment.rank())


def begin_program_run(
    program: UserProgram, target: str, seed: int | None, runs: Path
) -> tuple[Device, store.RunWriter]:
    """Choose the device of a program, as `tracing run` does; create its run, which the caller closes."""
    from tracing.program.device import Device

    device = Device(target, select=False)
    info = RunInfo(
        SCHEMA, program.name, str(program.path), tuple(sys.argv), seed, store.now(), device.environment(),
        "none", operators="none", kind="program", program=tuple(program.words), folder=str(Path.cwd()),
    )  # fmt: skip
    return device, store.create(runs, info, environment.rank())
