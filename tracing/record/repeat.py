"""One case, recorded again and again: the same process, seed and inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import torch._inductor.config as inductor
from torch._inductor.utils import fresh_cache

from tracing import store
from tracing.environment import fresh_caches
from tracing.model import Case, Outcome, RunInfo
from tracing.record.device import Device
from tracing.record.experiment import Experiment
from tracing.record.launches import LaunchRecorder
from tracing.record.perturb import Perturbation
from tracing.record.run import PassIRWhen, record

# what Inductor has against results that depend on timing: no choice by benchmarks
DETERMINISTIC = {"deterministic": True, "test_configs.force_filter_reduction_configs": True}


def recordings(
    case: Case,
    device: Device,
    count: int,
    runs: Path,
    info: RunInfo,
    progress: Callable[[str], None],
    *,
    fresh: bool = False,
    deterministic: bool = False,
    perturb: bool = False,
) -> Iterator[tuple[store.Run, Outcome]]:
    """Record a case `count` times and give each run as soon as it has ended.

    runs, info    -- where the runs are written, and what they say of themselves
    fresh         -- empty caches for each run; otherwise only the first compiles and tunes
    deterministic -- under Inductor's deterministic settings
    perturb       -- change what no program may rely on, otherwise in each run; compiles anew for each run.
                     What was changed is in the runs, as `Perturbed`
    """
    with contextlib.ExitStack() as stack:
        if fresh or perturb:
            device.caches = fresh_cache  # beside the folders, what this process keeps of compiled kernels
        else:
            stack.enter_context(fresh_caches())
            device.caches = contextlib.nullcontext
        if deterministic:
            stack.enter_context(inductor.patch(DETERMINISTIC))
        experiment = Experiment(case, device, info.seed)
        perturbation = stack.enter_context(Perturbation(device.virtual)) if perturb else None
        for index in range(count):
            writer = store.create(runs, msgspec.structs.replace(info, started=store.now()))
            recorder = LaunchRecorder(writer)
            passes: PassIRWhen | None = None if index else "after"
            try:
                with _perturbed(perturbation, index, writer) as beside:
                    outcome = record(experiment, recorder, progress, passes=passes, beside=beside)
            finally:
                writer.close()
            yield store.Run(writer.path), outcome


def _perturbed(
    perturbation: Perturbation | None, index: int, writer: store.RunWriter
) -> contextlib.AbstractContextManager[contextlib.AbstractContextManager[object]]:
    return (
        perturbation.of(index, writer) if perturbation else contextlib.nullcontext(contextlib.nullcontext())
    )
