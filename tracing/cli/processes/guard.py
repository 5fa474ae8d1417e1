"""Continue a command in a child process; the parent reports how the child ended, or goes on then."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import typer

from tracing.compiler.child import die_with

_FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
_FAILED = (2, 130)  # exit statuses of a command that has printed the reason
_DEBUGGERS = ("debugpy", "pydevd")


@dataclass(frozen=True, slots=True)
class KilledProcess:
    """How the child ended, if not as a command does."""

    by: str  # "SIGABRT", "os._exit(0)"
    run: Path | None  # the run that it was writing; None: none was created


@dataclass(frozen=True, slots=True)
class EndedChild:
    """A process that has ended."""

    pid: int
    status: int  # as of os.waitpid
    run: Path | None  # as of `KilledProcess`

    @property
    def by_user(self) -> bool:
        """True if a signal by which users end a process ended it."""
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) in _FORWARDED

    @property
    def by(self) -> str:
        """The signal or the exit status: "SIGABRT", "os._exit(0)"."""
        if os.WIFSIGNALED(self.status):
            return signal.Signals(os.WTERMSIG(self.status)).name
        return f"os._exit({os.WEXITSTATUS(self.status)})"


def guarded(report: Callable[[KilledProcess], int]) -> Callable[[Path], None]:
    """Fork, and return in the child, which reports the run that it writes to the returned function.

    report -- called in the parent if a signal or os._exit ends the child; gives the exit status

    The parent waits and never returns: it exits as the child does. Nothing is forked if torch is imported,
    because its threads would be lost, or under a debugger, which is attached to this process.
    """
    return continued_in_child(partial(_exit_as, report)) or (lambda run: None)


def continued_in_child(go_on: Callable[[EndedChild], NoReturn]) -> Callable[[Path], None] | None:
    """Fork as `guarded` does; None: nothing is forked.

    go_on -- called in the parent when the child has ended; the signals of a terminal are blocked then
    """
    if "torch" in sys.modules or sys.gettrace() or any(name in sys.modules for name in _DEBUGGERS):
        return None
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if not child:
        os.close(reading)
        die_with(parent)
        return partial(_announce, writing)
    os.close(writing)
    status = _waited(child)
    go_on(EndedChild(child, status, _announced(reading)))


def _exit_as(report: Callable[[KilledProcess], int], child: EndedChild) -> NoReturn:
    if child.by_user:
        os._exit(128 + os.WTERMSIG(child.status))
    if os.WIFEXITED(child.status):
        code = os.WEXITSTATUS(child.status)
        if code in _FAILED or (child.run and any(child.run.glob(f"outcomes-*-{child.pid}.ndjson"))):
            os._exit(code)  # the child has flushed what it printed
    raise typer.Exit(report(KilledProcess(child.by, child.run)))


@contextmanager
def unblocked() -> Iterator[None]:
    """While active, a signal of the terminal ends this process, in which `continued_in_child` goes on.

    Earlier ones were for the child, too, and are ignored.
    """
    while signal.sigtimedwait(_FORWARDED, 0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)


def _announce(pipe: int, run: Path) -> None:
    os.write(pipe, os.fsencode(run))
    os.close(pipe)


def _announced(pipe: int) -> Path | None:
    # processes that the case forked may hold the other end: do not wait for its end
    os.set_blocking(pipe, False)
    try:
        run = os.read(pipe, 1 << 16)
    except BlockingIOError:
        return None
    return Path(os.fsdecode(run)) if run else None


def _waited(child: int) -> int:
    # a terminal signals both processes; a signal that is sent only to the parent is forwarded
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_FORWARDED})
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        received = signal.sigtimedwait({signal.SIGCHLD, *_FORWARDED}, 1.0)
        if received is not None and received.si_signo != signal.SIGCHLD and received.si_code <= 0:
            os.kill(child, received.si_signo)
