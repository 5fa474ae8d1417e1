"""Continue a command in a child process; the parent reports a crash of the child."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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


def guarded(report: Callable[[KilledProcess], int]) -> Callable[[Path], None]:
    """Fork, and return in the child, which reports the run that it writes to the returned function.

    report -- called in the parent if a signal or os._exit ends the child; gives the exit status

    The parent waits and never returns: it exits as the child does. Nothing is forked if torch is imported,
    because its threads would be lost, or under a debugger, which is attached to this process.
    """
    if "torch" in sys.modules or sys.gettrace() or any(name in sys.modules for name in _DEBUGGERS):
        return lambda run: None
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if not child:
        os.close(reading)
        die_with(parent)
        return lambda run: _announce(writing, run)
    os.close(writing)
    status = _waited(child)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in _FORWARDED:  # a user ended the process
        os._exit(128 + os.WTERMSIG(status))
    run = _announced(reading)
    if os.WIFSIGNALED(status):
        raise typer.Exit(report(KilledProcess(signal.Signals(os.WTERMSIG(status)).name, run)))
    code = os.WEXITSTATUS(status)
    if code in _FAILED or (run is not None and any(run.glob(f"outcomes-*-{child}.ndjson"))):
        os._exit(code)  # the child has flushed what it printed
    raise typer.Exit(report(KilledProcess(f"os._exit({code})", run)))


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
