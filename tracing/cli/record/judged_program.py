"""`tracing run --judge PROGRAM`: a child process runs the program, and its parent judges the run afterwards.

So the judgement has the memory of the GPU for itself, and none of the program's settings of torch.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from types import FrameType
from typing import NoReturn

import typer

from tracing import environment, store
from tracing.analyze.runs.outcomes import died
from tracing.cli.answers import recording_hints
from tracing.cli.answers.failures import reported
from tracing.cli.app import err
from tracing.cli.narrow.judge import judgement_of, lacking
from tracing.cli.processes.guard import EndedChild, continued_in_child, unblocked
from tracing.cli.processes.new_recording import is_job


def judged_afterwards() -> Callable[[Path], None] | None:
    """Fork, and return in the child, which runs the program and reports its run to the returned function.

    The parent never returns. It judges the run, prints the judgement to standard error, and ends as the
    program did; if the program ended with 0, with the status of the judgement. None: nothing is forked, as
    under a debugger.
    """
    return continued_in_child(_judged)


def _judged(child: EndedChild) -> NoReturn:
    ended = os.WEXITSTATUS(child.status) if os.WIFEXITED(child.status) else None
    terminated = child.by == signal.SIGTERM.name  # by torchrun, as another rank failed
    if child.run is None or (child.by_user and not terminated):
        _end_as(child)
    run = store.Run(child.run)
    if terminated or died(run):
        lost = f"not judged, as {child.by} ended the program, and what its launches read may be lost"
        # a job is recorded by torchrun, and not by `tracing judge`
        next_one = recording_hints.judge_command(run) if is_job(run) and lacking(run) else _command(run)
        err.print(f"tracing: {_rank()}{lost}: {next_one}")
        _end_as(child)
    stop = _Stop(run)
    try:
        with unblocked(), stop.noted(), reported(err):
            status = _print_judgement(run, stop)
    except typer.Exit as failed:
        status = failed.exit_code
    if stop.by:
        _end_by(signal.SIGTERM)
    if ended == 0:
        raise typer.Exit(status)
    _end_as(child)


class _Stop:
    """SIGTERM ends the judgement after the current call or execution; a second one ends the process."""

    def __init__(self, run: store.Run) -> None:
        self.by = ""
        self._run = run

    @contextmanager
    def noted(self) -> Iterator[None]:
        """While entered, SIGTERM is noted."""
        before = signal.signal(signal.SIGTERM, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.by = signal.Signals(number).name
        ends = f"{self.by} ends the judgement before all is judged"
        err.print(f"tracing: {_rank()}{ends}: {_command(self._run)}")


def _command(run: store.Run) -> str:
    return f"tracing judge {quote(str(run.path))}"


def _print_judgement(run: store.Run, stop: _Stop) -> int:
    answer = judgement_of(run, run, stopped_by=lambda: stop.by)
    answer.keep(run, run)
    for line in answer.lines(answer.next):
        err.print(f"tracing: {_rank()}{line}")
    return answer.status


def _rank() -> str:
    # the lines of several ranks mix
    return f"rank {environment.rank()}: " if environment.world_size() > 1 else ""


def _end_as(child: EndedChild) -> NoReturn:
    if os.WIFSIGNALED(child.status):
        _end_by(os.WTERMSIG(child.status))
    os._exit(os.WEXITSTATUS(child.status))


def _end_by(fatal: int) -> NoReturn:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left its own
    if fatal != signal.SIGKILL:
        signal.signal(fatal, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {fatal})
    os.kill(os.getpid(), fatal)
    os._exit(128 + fatal)
