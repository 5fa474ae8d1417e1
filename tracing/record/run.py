"""Run a case under the recording hooks, and decide whether it agrees with eager.

The workload is built twice from one seed: once for eager, once for torch.compile, whose launches are
recorded. The initial state, the results and the changed state of the compiled one are in the run too, value
by value. On a GPU the kernels run on it; without one they run on the virtual GPU.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable

import msgspec
import torch

from tracing.errors import Problem, message
from tracing.launch.memory.out_of_bounds import OutOfBoundsError
from tracing.model import NotCovered, Outcome, Result, Start
from tracing.numerics.agreement import outcome_of
from tracing.numerics.referee import Referee
from tracing.numerics.reference import reference
from tracing.program.experiment import Experiment
from tracing.program.state import STEPPED
from tracing.program.structure import Facts
from tracing.program.variables import Reads
from tracing.record.autotuning.winners import Winners
from tracing.record.failures.diagnosis import Diagnosis
from tracing.record.graphs.frame_compiles import frame_compiles_recorded
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.memory.eager_bounds import EagerBounds, bounds_checked
from tracing.record.passes.derivation import derive
from tracing.record.passes.recorder import PassRecorder
from tracing.record.passes.recording import PassIRWhen, passes_recorded
from tracing.record.results import values
from tracing.store import RunWriter
from tracing.virtual_gpu.self_test import self_test

_EAGER, _COMPILING = "running in eager", "compiling and running"
_NOTHING = contextlib.nullcontext()
_COMPILED = Outcome(
    "compiled", "every kernel was compiled, none was executed; nothing was compared with eager"
)


def record(
    experiment: Experiment,
    recorder: LaunchRecorder,
    progress: Callable[[str], None],
    *,
    passes: PassIRWhen | None = "after",
    winners: Winners | None = None,
    reads: Reads | None = None,
    around: contextlib.AbstractContextManager[object] = _NOTHING,
) -> Outcome:
    """Record one case into a run and return how it ended; the outcome is in the run as well.

    recorder -- entered while the compiled workload runs; the rest goes into its run, too
    passes   -- record the compiler passes of every kernel compiled for the case, in eager too, and their IR
                "during" each pass or "after" the case (`tracing.record.passes.derivation`); None: no passes
    winners  -- the configurations for autotuners, entered while the case runs; None: they choose
    reads    -- notes which environment variables the case reads, and was entered while it was imported
    around   -- entered around `recorder`

    A case that raises leaves a readable run with status "failed". An interruption is recorded, then
    reraised.
    """
    writer = recorder.writer
    stages: list[str] = []
    diagnosis = Diagnosis(experiment.case.path, writer)
    compilations: PassRecorder | None = None

    def reached(stage: str) -> None:
        stages.append(stage)
        if compilations is not None:
            compilations.eager = stage == _EAGER
        progress(stage)

    try:
        recorded = passes_recorded(writer, passes) if passes else contextlib.nullcontext()
        with winners or Winners(writer), recorded as compilations:
            if compilations is not None:
                compilations.began = lambda count: progress(f"compiling kernel {count}")
            results = _results(experiment, recorder, reads or Reads(), diagnosis, around, reached)
        outcome = _COMPILED
        if results is not None:
            actual, expected, bounds = results
            outcome = _within(recorder, bounds, _judged(experiment, (actual, expected), progress))
    except Problem as problem:
        writer.append(Outcome("failed", problem.problem))
        raise
    except (Exception, SystemExit) as error:  # the latter is the case's own
        outcome = Outcome("failed", diagnosis.of(error), traceback.format_exc(), message(error))
        if _COMPILING in stages and not isinstance(error, OutOfBoundsError):
            if experiment.device.virtual:
                progress("failed; testing the virtual GPU itself")
                _test_virtual_gpu(writer)
            if diagnosis.failure is not None and diagnosis.failure.kind == "generated code":
                progress("failed; checking what custom operators declare")
                outcome = _with_undeclared(outcome, experiment)
    except BaseException as error:
        writer.append(Outcome("interrupted", type(error).__name__))
        raise
    if diagnosis.failure is None:
        writer.append(outcome)
    if passes:
        derive(
            writer.path,
            writer.rank,
            lambda done, of: progress(f"deriving the IR between passes: {done} of {of} compiled kernels"),
        )
    return outcome if diagnosis.failure is None else diagnosis.written(outcome)


def _results(
    experiment: Experiment,
    recorder: LaunchRecorder,
    reads: Reads,
    diagnosis: Diagnosis,
    around: contextlib.AbstractContextManager[object],
    progress: Callable[[str], None],
) -> tuple[Facts, Facts, EagerBounds] | None:
    # of compiled and of eager; None: nothing was executed
    writer = recorder.writer
    reads.into(writer)
    with experiment.device.active(), diagnosis:
        if not experiment.device.execute:
            _compile(experiment, recorder, around, progress)
            return None
        progress(_EAGER)
        with reads:  # not while the case is compiled: torch.compile would trace it
            expected, bounds = _in_eager(experiment, allow_out_of_bounds=recorder.allow_out_of_bounds)
        progress(_COMPILING)
        with reads:
            workload = experiment.workload()
        writer.extend([Start(name, value) for name, value in values(experiment.start(workload))])
        with around, frame_compiles_recorded(writer), recorder:
            actual = experiment.results(workload, torch.compile)
        writer.extend([Result(name, value) for name, value in values(actual, recorder.unwritten)])
        progress(f"launches recorded: {recorder.recorded} of {recorder.count}")
        if bounds.stopped is not None:  # the compiled case ran first: its launches are recorded
            raise bounds.stopped
        _note_compiled_steps(actual, expected, writer)
    return actual, expected, bounds


def _in_eager(experiment: Experiment, *, allow_out_of_bounds: bool) -> tuple[Facts, EagerBounds]:
    facts: Facts = {}
    if not experiment.device.virtual:  # a GPU does not notice such an access
        return experiment.results(experiment.workload(), None), EagerBounds()
    with bounds_checked(allow_out_of_bounds=allow_out_of_bounds) as bounds:
        facts = experiment.results(experiment.workload(), None)
    return facts, bounds


def _within(recorder: LaunchRecorder, bounds: EagerBounds, outcome: Outcome) -> Outcome:
    # a case whose kernels leave their arguments has not passed, though its results agree
    compiled = recorder.outside_accesses
    if outcome.status == "passed" and (bounds.accesses or compiled):
        outcome = msgspec.structs.replace(outcome, status="out of bounds")
    return msgspec.structs.replace(outcome, detail="; ".join([*bounds.unlike(compiled), outcome.detail]))


def _judged(experiment: Experiment, results: tuple[Facts, Facts], progress: Callable[[str], None]) -> Outcome:
    referee = Referee.of(experiment, torch.compile, progress)
    with experiment.device.active():
        return outcome_of(*results, referee if experiment.referee else None)


def _with_undeclared(outcome: Outcome, experiment: Experiment) -> Outcome:
    # what operators do against their schemas and fake implementations, by which code was generated
    effects: list[str] = []
    with contextlib.suppress(Exception), experiment.device.active():
        reference(
            lambda: experiment.results(experiment.workload(), None), samples=0, undeclared=effects.append
        )
    detail = "; ".join([*effects, outcome.detail])
    return msgspec.structs.replace(outcome, detail=detail, undeclared=tuple(effects))


def _note_compiled_steps(actual: Facts, expected: Facts, writer: RunWriter) -> None:
    for name in expected.keys() - actual.keys():
        if name.startswith(STEPPED) and name.endswith(".param_groups"):
            optimizer = name.removeprefix(STEPPED).removesuffix(".param_groups")
            what = f"the state of {optimizer}, whose step torch.compile compiled"
            writer.append(NotCovered(what, "an optimizer that the case's function reaches"))


def _compile(
    experiment: Experiment,
    recorder: LaunchRecorder,
    around: contextlib.AbstractContextManager[object],
    progress: Callable[[str], None],
) -> None:
    progress("compiling")
    workload = experiment.workload()
    with around, frame_compiles_recorded(recorder.writer), recorder:
        experiment.results(workload, torch.compile)
    progress(f"launches recorded: {recorder.recorded} of {recorder.count}")


def _test_virtual_gpu(writer: RunWriter) -> None:
    # the virtual GPU uses private parts of torch and Triton
    for line in self_test():
        what = f"this case: the virtual GPU is off ({line})"
        writer.append(NotCovered(what, "versions of torch and Triton in scripts/pins.toml"))
