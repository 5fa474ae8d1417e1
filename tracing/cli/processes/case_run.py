"""Begin the run of a command that executes a case and records no launches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tracing import environment, store
from tracing.model import SCHEMA, RunInfo

if TYPE_CHECKING:
    from tracing.program.experiment import Experiment


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
