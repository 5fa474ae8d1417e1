"""Record a launch once more, by `tracing run`, because the contents of its inputs were not kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shlex import join

from tracing import store
from tracing.analyze.replay.new_recording import NewRecording, launch_recorded_anew
from tracing.analyze.runs.outcomes import died, ending, failed_anew
from tracing.analyze.runs.recorded_steps import options_of, steps_on_disk
from tracing.analyze.runs.recording_commands import command, recording, require_recordable, variables
from tracing.analyze.runs.winners import choices
from tracing.cli.answers import recording_hints
from tracing.cli.app import spinner
from tracing.environment import with_variables
from tracing.errors import Problem
from tracing.model import KeptTensor, Selection
from tracing.model.steps import StepSelection
from tracing.store.recorded_launch import RecordedLaunch
from tracing.store.runs import NEW_RECORDINGS
from tracing.store.winners import write_winners

# Not all caches are disabled, as torch then deletes the TTIR of kernels before their launch.
_NO_CACHED_GRAPHS = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}


def record_anew(recorded: RecordedLaunch, runs: Path) -> NewRecording:
    """Repeat the case of a launch, with the same winners of autotuning, and keep the launch's inputs.

    runs -- the folder in which the new run is put if its own run cannot be written

    Raises Problem, with the command that records the whole run, if the launch cannot be recorded anew.
    """
    run = recorded.run
    require_recordable(run.info)
    typed = f"record the run with them: `{recording_hints.record_command(run, '--keep-inputs')}`"
    if run.info.kind == "program":
        typed += "; standard input was empty now: add `< INPUT` if the program reads it"
    why = f"the inputs of launch {recorded.launch.index} were not kept"
    if is_job(run):
        raise Problem(f"{why}, and its program is a job of several processes", typed)
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        try:
            return launch_recorded_anew(recorded, _Commands(run, runs, Path(folder), why))
        except Problem as problem:
            raise Problem(problem.problem, problem.remedy or typed) from None


def record_all_anew(run: store.Run, runs: Path) -> store.Run:
    """Repeat the case of a run, with the same winners, and keep the inputs and outputs of its launches.

    Of a program whose steps were recorded in part, only those steps that the run has.

    runs -- the folder in which the new run is put if its own run cannot be written

    Raises Problem, with the command that records it, if that cannot be done.
    """
    require_recordable(run.info)
    typed = f"record the run with them: `{recording_hints.keep_inputs(run)}`"
    why = "the inputs and outputs of its launches were not kept"
    if is_job(run):
        raise Problem(f"{why}, and its program is a job of several processes", typed)
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        return _Commands(run, runs, Path(folder), why).all()


def is_job(run: store.Run) -> bool:
    """True if several processes ran the program, as torchrun starts them: it is not repeated in one."""
    return run.info.ranks_started > 1 or len(run.processes()) > 1


def recorded_before(run: store.Run) -> store.Run | None:
    """The latest complete run that `record_all_anew` has made of a run, with the same torch and Triton."""
    steps = steps_on_disk(run)
    for path in sorted(run.path.glob("anew/*/run.json"), reverse=True):
        with suppress(Problem):  # a damaged one
            anew = store.Run(path.parent)
            whole = not ending(anew, 0) and anew.info.selection == Selection()
            whole = whole and anew.info.steps in (steps, StepSelection())
            if whole and any(anew.records(KeptTensor)) and _versions(anew) == _versions(run):
                return anew
    return None


def _versions(run: store.Run) -> tuple[str, ...]:
    environment = run.info.environment
    return environment.torch, environment.triton, environment.device, environment.target


class _Commands:
    # the recorder that launch_recorded_anew takes; `folder` is for temporary files

    def __init__(self, run: store.Run, runs: Path, folder: Path, why: str) -> None:
        self._why = why  # the program is recorded anew
        run.require_trust(f"`{join(recording(run))}`")
        # inside of the run: neither a list of runs nor "latest" shall name what nobody asked to record
        kept = run.path / NEW_RECORDINGS if os.access(run.path, os.W_OK) else runs
        self._run, self._runs, self._folder = run, kept, folder
        self._winners: Sequence[str] = ()  # an autotuner that measures anew may choose another configuration
        if chosen := choices(run):
            path = folder / "winners.json"
            write_winners(path, run.info.environment, [one.first for one in chosen])
            self._winners = ("--winners", str(path))

    def inputs(self, index: int) -> store.Run:
        options = ("--launches", f"{index}:{index + 1}", "--keep-inputs")
        return self._recorded(self._runs, options, f"launch {index} and its inputs")

    def all(self) -> store.Run:
        steps = options_of(steps_on_disk(self._run))
        which = f"the launches of {' '.join(steps)}" if steps else "all launches"
        # what a process holds in memory is lost when it dies
        held = ("--keep-memory", "0") if died(self._run) else ()
        options = ("--keep-inputs", *held, *steps)
        return self._recorded(self._runs, options, f"{which}, their inputs and outputs")

    def calls(self, kernel: str) -> store.Run:
        options = ("--kernel", kernel)
        return self._recorded(self._folder, options, f"the launches of {kernel}")

    def _recorded(self, runs: Path, options: Sequence[str], what: str) -> store.Run:
        own = (*options, *self._winners, "--no-passes", "--runs", str(runs.absolute()))
        words = command(self._run.info, *own)
        # a graph from Inductor's cache has no graph records, because another program compiled it
        settings = with_variables({**variables(self._run), **_NO_CACHED_GRAPHS})
        is_program = self._run.info.kind == "program"
        with spinner(f"recording {what}"):
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdin=subprocess.DEVNULL,  # what the program read of it is gone, and a terminal would wait
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=settings,
                cwd=self._run.info.folder or None,
            )
            printed, errors = process.communicate()
        lines = printed.splitlines()
        if is_program:  # a program has its own output and exit status
            run = _written_by(process.pid, runs, "*" if died(self._run) else "outcomes")
        else:  # 1: the results differ from eager's, 2: that is not decided, or the case failed
            run = Path(lines[-1]) if process.returncode in (0, 1, 2) and lines else None
        if run is None:
            raise self._failed(_ended_by(process.returncode) or _error(errors) or "it wrote no run")
        anew = store.Run(run)
        if error := failed_anew(self._run, anew):  # it has not made all launches
            raise self._failed(error)
        return anew

    def _failed(self, error: str) -> Problem:
        remedy = "record the run with them"
        if self._run.info.kind == "program":
            remedy += "; standard input was empty now, so give a program that reads it the same input"
        command = recording_hints.record_command(self._run, "--keep-inputs")
        return Problem(f"{self._why}, and recording it anew failed: {error}", f"{remedy}: `{command}`")


def _ended_by(status: int) -> str:
    # a fatal signal: standard error tells nothing of it
    if status >= 0:
        return ""
    return f"{signal.Signals(-status).name} ended the process"


def _error(printed: str) -> str:
    # of `tracing: problem`, below which is the remedy, the problem; else the last line, as of a traceback
    lines = printed.strip().splitlines()
    if len(lines) > 1 and lines[-1].startswith("  ") and lines[-2].startswith("tracing: "):
        return lines[-2].removeprefix("tracing: ")
    return lines[-1].strip() if lines else ""


def _written_by(pid: int, runs: Path, kind: str) -> Path | None:
    # a file of this kind
    written = [path for path in store.recorded(runs) if any(path.glob(f"{kind}-*-{pid}.ndjson"))]
    return max(written, key=lambda path: path.stat().st_mtime, default=None)
