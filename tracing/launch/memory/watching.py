"""Receive the memory accesses of the next launch on this thread, if the interpreter executes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tracing.interpreter.gates import watched
from tracing.launch.hidden_computation import HiddenComputation
from tracing.launch.memory.accesses import Accesses


class _Thread(threading.local):
    waiting: Sequence[Accesses] = ()


_thread = _Thread()


def watch(accesses: Accesses) -> None:
    """Note the accesses of the launch that was announced on this thread."""
    _thread.waiting = (*_thread.waiting, accesses)


def forget() -> None:
    """Drop the watchers of an earlier launch, which may have raised before it ran."""
    _thread.waiting = ()


@contextmanager
def executing() -> Iterator[None]:
    """While active, the launch that was announced on this thread is executed."""
    waiting, _thread.waiting = _thread.waiting, ()
    if not waiting:
        yield
        return
    try:
        with watched(waiting):
            yield
    finally:
        with HiddenComputation():
            for ended in [ended for accesses in waiting for ended in accesses.ended]:
                ended()
        for accesses in waiting:
            accesses.forget_listeners()
