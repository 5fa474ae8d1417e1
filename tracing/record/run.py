"""Run a case under the recording hooks, and say whether it agrees with eager.

The workload is built twice from one seed: once for eager, once for torch.compile, whose launches are
recorded. On a GPU the kernels run on it; without one they run on the virtual GPU.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, TypeAlias

import torch

from tracing.case import describe
from tracing.errors import Problem
from tracing.model import Compilation, Kernel, NotCovered, Outcome, Result
from tracing.record.derive import derive
from tracing.record.digest import digest
from tracing.record.experiment import Experiment, judged
from tracing.record.launches import LaunchRecorder
from tracing.record.passes import PassRecorder
from tracing.record.winners import Winners
from tracing.record.workers import recorded_in_workers
from tracing.store import Run, RunWriter
from tracing.virtual_gpu.self_test import self_test

_COMPILING = "compiling and running"
_NOTHING = contextlib.nullcontext()
PassIRWhen: TypeAlias = Literal["after", "during"]


def record(
    experiment: Experiment,
    recorder: LaunchRecorder,
    progress: Callable[[str], None],
    *,
    passes: PassIRWhen | None = "after",
    winners: Winners | None = None,
    beside: contextlib.AbstractContextManager[object] = _NOTHING,
) -> Outcome:
    """Record one case into a run and return how it ended; the outcome is in the run as well.

    recorder -- entered while the compiled workload runs; the rest goes into its run, too
    passes   -- record the compiler passes of every kernel compiled for the case, in eager too, and their IR
                "during" each pass or "after" the case (`tracing.record.derive`); None: no passes
    winners  -- what autotuners are to take, entered while the case runs; None: what they find
    beside   -- entered around `recorder`

    A case that raises leaves a readable run with status "failed". An interruption is written down, then
    raised again.
    """
    writer = recorder.writer
    stages: list[str] = []

    def reached(stage: str) -> None:
        stages.append(stage)
        progress(stage)

    try:
        with winners or Winners(writer), _passes(writer, passes) if passes else contextlib.nullcontext():
            outcome = _compared(experiment, recorder, beside, reached)
    except Problem as problem:
        writer.append(Outcome("failed", problem.problem))
        raise
    except Exception as error:
        outcome = Outcome("failed", describe(error, experiment.case.path), traceback.format_exc())
        if experiment.device.virtual and _COMPILING in stages:
            progress("failed; testing the virtual GPU itself")
            _test_virtual_gpu(writer)
    except BaseException as error:
        writer.append(Outcome("failed", f"interrupted by {type(error).__name__}"))
        raise
    writer.append(outcome)
    if passes:
        derive(writer.path, writer.rank, lambda done, of: progress(f"IR of passes: {done} of {of} kernels"))
    return outcome


def _compared(
    experiment: Experiment,
    recorder: LaunchRecorder,
    beside: contextlib.AbstractContextManager[object],
    progress: Callable[[str], None],
) -> Outcome:
    writer = recorder.writer
    if not experiment.device.execute:
        return _compiled(experiment, recorder, beside, progress)
    with experiment.device.active():
        progress("running in eager")
        expected = experiment.results(experiment.workload(), lambda fn: fn)
        progress(_COMPILING)
        workload = experiment.workload()
        with beside, recorder:
            actual = experiment.results(workload, torch.compile)
        _write_results(actual, writer)
        progress(f"launches recorded: {recorder.recorded} of {recorder.count}")
        if recorder.count == 0:
            writer.append(NotCovered("this case: it launched no kernel", "a case that torch.compile lowers"))
    return judged(actual, expected)


def _compiled(
    experiment: Experiment,
    recorder: LaunchRecorder,
    beside: contextlib.AbstractContextManager[object],
    progress: Callable[[str], None],
) -> Outcome:
    with experiment.device.active():
        progress("compiling")
        workload = experiment.workload()
        with beside, recorder:
            experiment.results(workload, torch.compile)
        progress(f"launches recorded: {recorder.recorded} of {recorder.count}")
    return Outcome(
        "compiled", "every kernel was compiled, none was executed; nothing was compared with eager"
    )


def _test_virtual_gpu(writer: RunWriter) -> None:
    # it rests on private parts of torch and Triton
    for line in self_test():
        what = f"this case: the virtual GPU is off ({line})"
        writer.append(NotCovered(what, "versions of torch and Triton in scripts/pins.toml"))


def _write_results(results: Mapping[str, torch.Tensor], writer: RunWriter) -> None:
    for name, result in results.items():
        try:
            writer.append(Result(name, digest(result)))
        except (RuntimeError, NotImplementedError, TypeError) as error:  # sparse, or a subclass without bits
            writer.append(NotCovered(f"the bits of {name} ({str(error).splitlines()[0]})", "none"))


@contextlib.contextmanager
def _passes(writer: RunWriter, when: PassIRWhen) -> Iterator[None]:
    during = when == "during"
    with PassRecorder(writer, print_ir=during), recorded_in_workers(writer, print_ir=during):
        yield
    run = Run(writer.path)
    compiled = {compilation.hash for compilation in run.records(Compilation)}
    for kernel in run.records(Kernel):
        if kernel.kind == "triton" and kernel.hash not in compiled:
            what = f"the compiler passes of {kernel.name}: it was compiled before the run"
            writer.append(NotCovered(what, "a process that has not launched it yet"))
