"""Notes the fatal signal that ends a program, and the Python line of each thread, in its run.

A run whose process dies has no outcome. Python's `faulthandler` writes before the process does.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from tracing.store import RunWriter
from tracing.store.crash import crash_file
from tracing.store.run_files import private
from tracing.upstream.patch import patched

_handled = False  # fatal signals of this process are noted in a run
_terminates = False  # SIGTERM is noted, too


def _disable_in_child() -> None:
    # what ends a fork does not end the program
    if _handled:
        _disable()
    _forget_termination()


os.register_at_fork(after_in_child=_disable_in_child)


@contextmanager
def crashes_noted(writer: RunWriter) -> Iterator[None]:
    """While active, a fatal signal is noted in the run, unless the program itself uses faulthandler."""
    global _handled
    if faulthandler.is_enabled() or not writer.writes:
        yield
        return
    path = crash_file(writer.path, writer.process)
    with private(path, "ab") as file:
        faulthandler.enable(file)
        _handled = True
        _note_termination(file)
        try:
            with patched(faulthandler, "enable", _by_the_program):
                yield
        finally:
            if _handled:
                _disable()
            _forget_termination()
    with suppress(OSError):
        if not path.stat().st_size:
            path.unlink()


def _by_the_program(original: Any) -> Any:
    def enable(*args: Any, **options: Any) -> None:
        global _handled
        _handled = False
        original(*args, **options)

    return enable


def _disable() -> None:
    global _handled
    _handled = False
    faulthandler.disable()


def _note_termination(file: IO[bytes]) -> None:
    # the signal then ends the program, as without this
    global _terminates
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        faulthandler.register(signal.SIGTERM, file, chain=True)
        _terminates = True


def _forget_termination() -> None:
    global _terminates
    if _terminates and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # else it is the program's by now
        faulthandler.unregister(signal.SIGTERM)
    _terminates = False
