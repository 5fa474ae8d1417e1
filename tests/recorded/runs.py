"""Records cases in the process of the tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commands import DATA
from data import kernels
from handmade.records import new_run
from msgspec.structs import replace

from tracing import store
from tracing.model import SCHEMA, RunInfo, Winner
from tracing.program.case import load_case
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.record.autotuning.winners import Winners
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.passes.derivation import derive
from tracing.record.passes.recorder import PassRecorder
from tracing.record.passes.recording import PassIRWhen
from tracing.record.run import record


def recorded(
    case: str | Path,
    runs: Path,
    winners: Sequence[Winner] = (),
    *,
    passes: PassIRWhen | None = None,
    **options: Any,
) -> store.Run:
    """The run of a case; its autotuners take `winners`, its recorder `options`.

    passes -- None: without the compiler's passes
    """
    loaded, device = load_case(str(case)), Device("sm_90")
    info = RunInfo(SCHEMA, loaded.name, str(loaded.path), (), 0, store.now(), device.environment())
    writer = store.create(runs, info)
    experiment, taken = Experiment(loaded, device, seed=0), Winners(writer, winners)
    record(experiment, LaunchRecorder(writer, **options), lambda stage: None, passes=passes, winners=taken)
    writer.close()
    return store.Run(writer.path)


def recorded_passes(runs: Path, *compiled: tuple[str, str]) -> store.Run:
    """The passes of kernels of data/kernels.py, each with the target that it is compiled for."""
    writer = new_run(runs)
    with PassRecorder(writer):
        for kernel, target in compiled:
            kernels.compiled(kernel, target)
    derive(writer.path)
    writer.close()
    return store.Run(writer.path)


def in_two_blocks(runs: Path, options: str = "", **recorder: Any) -> tuple[store.Run, store.Run]:
    """Runs of data/tuned_sum.py, one for each of the sizes between which its tuner chooses."""
    case = f"{DATA / 'tuned_sum.py'}{options}"
    taken = list(recorded(case, runs).records(Winner))
    a, b = (
        recorded(
            case, runs, [replace(one, config={**one.config, "BLOCK": size}) for one in taken], **recorder
        )
        for size in (16, 256)
    )
    return a, b


def words(text: str) -> str:
    """The words of a printed table, without its spacing."""
    return re.sub(" +", " ", text)
