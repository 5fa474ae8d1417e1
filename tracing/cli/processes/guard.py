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
_DEBUGGERS = ("debugpy", "pydevd")


@dataclass(frozen=True, slots=True)
class KilledProcess:
    """How the child ended, if a signal ended it."""

    signal: str  # "SIGABRT"
    run: Path | None  # the run that it was writing; None: none was created


def guarded(report: Callable[[KilledProcess], int]) -> Callable[[Path], None]:
    """Fork, and return in the child, which reports the run that it writes to the returned function.

    report -- called in the parent if a signal ends the child; gives the exit status of the command

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
    if os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))  # the child has flushed what it printed
    if os.WTERMSIG(status) in _FORWARDED:  # a user ended the process
        os._exit(128 + os.WTERMSIG(status))
    with os.fdopen(reading, encoding="utf-8") as pipe:
        run = pipe.read()
    raise typer.Exit(
        report(KilledProcess(signal.Signals(os.WTERMSIG(status)).name, Path(run) if run else None))
    )


def _announce(pipe: int, run: Path) -> None:
    os.write(pipe, str(run).encode())
    os.close(pipe)


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
