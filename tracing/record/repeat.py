"""Records one case any number of times, each time in a process of its own.

Most runs are forks of this process, which has imported torch and run nothing. So the case's globals, caches,
patches and random generators are new in each run, and a crash ends only its run. A generator that the case
does not seed has another seed in each run. The runs share the files that the case writes and the compiled
kernels on disk. Forks also share the seed of Python's string hashes and where memory lies, on which a program
may depend: every third run is a new program with another seed, which imports torch anew. Each run is a new
program where this process has opened a GPU, as a fork cannot use it; then two of three have one seed.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

import tracing.upstream.inductor.compiler  # noqa: F401  # imported once, for all runs
from tracing import store
from tracing.compiler import stalled_child
from tracing.compiler.child import ChildResult, in_child, opened_gpu, respond, send_message
from tracing.environment import fresh_caches, hashes_are_random, module_command, with_hash_seed
from tracing.errors import Problem
from tracing.model import SCHEMA, Outcome, RunInfo
from tracing.perturb.perturbation import Perturbation, changed_in_turn
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.program.user_program import UserProgram
from tracing.program.variables import Reads
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.passes.recording import PassIRWhen
from tracing.record.recorded_program import RecordedProgram
from tracing.record.repeated_input import repeated_input
from tracing.record.run import record
from tracing.record.session import Session
from tracing.upstream.inductor.config import settings_changed

# Inductor's settings against results that depend on timing: no choice by benchmarks
DETERMINISTIC = {"deterministic": True, "test_configs.force_filter_reduction_configs": True}
PATIENCE = 10.0  # seconds that an interrupted run has to write its records
_NEW = 3  # of so many runs one is a new program


class Series(msgspec.Struct, frozen=True):
    """A case that is recorded `count` times."""

    case: str  # by name or path, with its options
    target: str
    seed: int | None  # None: 0 for a case; a program seeds its generators itself
    count: int
    runs: str  # the folder in which runs are written
    argv: tuple[str, ...]
    fresh_caches: bool = False  # for each run; otherwise only the first compiles and tunes
    deterministic: bool = False  # under Inductor's deterministic settings
    perturb: bool = False  # perturb each run differently; compiles anew for each
    program: tuple[str, ...] = ()  # the words after `python`; empty: a case


class Interrupted(Exception):
    """A series was interrupted."""

    def __init__(self, run: Path | None) -> None:
        """run -- the run that was being recorded"""
        super().__init__(run)
        self.run = run


class SeriesRun(msgspec.Struct, frozen=True):
    """One run of a series."""

    series: Series
    index: int
    streams: int  # that the first run used
    hash_seed: int | None  # see `hash_seed`


def hash_seed(index: int, *, perturb: bool) -> int | None:
    """The seed of Python's string hashes in a run; 0: that of run 0; None: the user fixed it for all runs."""
    if not hashes_are_random():
        return None
    return index if _is_for_hashes(index, perturb=perturb) else 0


def _is_for_hashes(index: int, *, perturb: bool) -> bool:
    # with `perturb` nothing else is changed in turn in this run
    return changed_in_turn(index) == "hash seed" if perturb else index % _NEW == 1


def recordings(
    series: Series, progress: Callable[[str], None], waits: Callable[[str], None]
) -> Iterator[tuple[store.Run, Outcome]]:
    """Record a case; yields each run when it has ended.

    progress -- receives the stage of the run that is recorded
    waits    -- receives where that run waits: a run has no time limit

    Deliberate changes are recorded in the runs, as `Perturbed`. A run whose process crashed has failed.
    Each run of a program reads the same standard input.

    Raises Problem where a case cannot be loaded or the input does not end, and Interrupted.
    """
    streams = 0  # that the first run used
    with contextlib.ExitStack() as stack:
        if not (series.fresh_caches or series.perturb):
            stack.enter_context(fresh_caches())
        rewind_input = stack.enter_context(repeated_input()) if series.program else lambda: None
        for index in range(series.count):
            rewind_input()
            one = SeriesRun(series, index, streams, hash_seed(index, perturb=series.perturb))
            path, ended = _in_child(one, progress, waits)
            result = ended.result or {}
            if "problem" in result:
                raise Problem(result["problem"], result["remedy"])
            if path is None:
                raise Problem(f"run {index} did not start: {ended.failure}", ended.stderr[-1000:])
            if result.get("interrupted"):
                raise Interrupted(path)
            streams = result.get("streams", streams)
            yield store.Run(path), _outcome(path, ended)


def _in_child(
    one: SeriesRun, progress: Callable[[str], None], waits: Callable[[str], None]
) -> tuple[Path | None, ChildResult]:
    # the run's path, once it has one, and how its process ended
    path: Path | None = None

    def received(text: str) -> None:
        nonlocal path
        if path is None:
            path = Path(text)
        else:
            progress(text)

    def waiting(where: str) -> None:
        waits(f"run {one.index}: {where}")

    try:
        ended = in_child(
            lambda: _record(one), None,
            received=received, waits=waiting, patience=PATIENCE, program=_program(one),
        )  # fmt: skip
    except KeyboardInterrupt:
        raise Interrupted(path) from None
    return path, ended


def _program(one: SeriesRun) -> tuple[str, ...]:
    # the command of a new program; none: the run is a fork
    if not (opened_gpu() or _is_for_hashes(one.index, perturb=one.series.perturb)):
        return ()
    python = module_command("tracing.record.repeat_child", msgspec.json.encode(one).decode())
    return python if one.hash_seed is None else with_hash_seed(python, one.hash_seed)


def _outcome(path: Path, ended: ChildResult) -> Outcome:
    # for a crashed process the parent writes the outcome
    known = next(store.Run(path).records(Outcome), None)
    if known is not None:
        return known
    outcome = Outcome("failed", ended.failure or "its process ended without a message", ended.stderr)
    with contextlib.closing(store.reopened(path)) as writer:
        writer.append(outcome)
    return outcome


# ---- in the process of a run


def program() -> None:
    """Record one run in a new Python process; the arguments describe the recording and name a pipe."""
    arguments, pipe = sys.argv[1:]
    one = msgspec.json.decode(arguments, type=SeriesRun)
    respond(lambda: _record(one), int(pipe))


def _record(one: SeriesRun) -> dict[str, Any]:
    stalled_child.answer_with_frames()
    try:
        return {"streams": _recorded(one)}
    except Problem as problem:
        return {"problem": problem.problem, "remedy": problem.remedy}
    except KeyboardInterrupt:
        return {"interrupted": True}


def _recorded(one: SeriesRun) -> int:
    _seed_as_a_new_process()
    series = one.series
    device = Device(series.target, select=not series.program)
    if series.program:
        return _recorded_program(one, device)
    with Reads() as reads:
        case = device.load(series.case)
    with contextlib.ExitStack() as stack:
        if not (series.fresh_caches or series.perturb):
            device.caches = contextlib.nullcontext
        if series.deterministic:
            stack.enter_context(settings_changed(DETERMINISTIC))
        info = RunInfo(
            SCHEMA, case.name, str(case.path), series.argv, series.seed or 0, store.now(),
            device.environment(),
        )  # fmt: skip
        writer = stack.enter_context(contextlib.closing(store.create(Path(series.runs), info)))
        send_message(str(writer.path))
        perturbation = _perturbation(one, device, writer)
        around = stack.enter_context(perturbation) if perturbation else contextlib.nullcontext()
        passes: PassIRWhen | None = None if one.index else "after"
        experiment = Experiment(case, device, series.seed or 0)
        record(experiment, LaunchRecorder(writer), send_message, passes=passes, reads=reads, around=around)
    return perturbation.streams if perturbation else 0


def _seed_as_a_new_process() -> None:
    # A fork inherits the states of its parent; Python seeds only its own generator anew. No fork has a GPU
    # open, and torch seeds the GPU's generator when it opens one; the virtual GPU draws from the default one
    np.random.seed()
    torch.default_generator.seed()


def _perturbation(one: SeriesRun, device: Device, writer: store.RunWriter) -> Perturbation | None:
    if not one.series.perturb:
        return None
    return Perturbation(one.index, device.virtual, one.streams, writer, one.hash_seed)


def _recorded_program(one: SeriesRun, device: Device) -> int:
    series = one.series
    program = UserProgram(series.program)
    info = RunInfo(
        SCHEMA, program.name, str(program.path), series.argv, series.seed, store.now(), device.environment(),
        kind="program", program=series.program, folder=str(Path.cwd()), operators="digests",
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        if not (series.fresh_caches or series.perturb):
            device.caches = contextlib.nullcontext
        if series.deterministic:
            stack.enter_context(settings_changed(DETERMINISTIC))
        writer = store.create(Path(series.runs), info)
        send_message(str(writer.path))
        perturbation = _perturbation(one, device, writer)
        around = [stack.enter_context(perturbation)] if perturbation else []
        # nothing else shows a difference after the last launch: a program has no results
        recorder = LaunchRecorder(writer, operators="digests", strict=False)
        session = Session(device, recorder, passes=None if one.index else "after", around=around)
        RecordedProgram(program, session, series.seed).run_to_end()
    return perturbation.streams if perturbation else 0
