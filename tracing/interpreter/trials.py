"""Trial launches of a benchmark: compiled and checked against the target, but not executed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tracing.upstream.patch import replaced


class _Thread(threading.local):
    trying = False


class _Process:
    every_configuration = False


_thread = _Thread()


def tried(call: Callable[[], object]) -> None:
    """Call a function whose launches on this thread are not executed. Raises what a launch raises."""
    before, _thread.trying = _thread.trying, True  # `replaced` would change all threads
    try:
        call()
    finally:
        _thread.trying = before


def trying() -> bool:
    """True for a launch of this thread that is not to be executed."""
    return _thread.trying


@contextmanager
def every_configuration() -> Iterator[None]:
    """While active, an autotuner that cannot measure compiles all its configurations."""
    with replaced(_Process, "every_configuration", True):
        yield


def wants_every_configuration() -> bool:
    """True while `every_configuration` is active."""
    return _Process.every_configuration
