"""Tells whether this thread builds a workload: what it computes then are the workload's inputs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Thread(threading.local):
    building = False


_thread = _Thread()


def is_building() -> bool:
    """True while this thread builds a workload."""
    return _thread.building


@contextmanager
def building() -> Iterator[None]:
    """While active, this thread builds a workload."""
    before, _thread.building = _thread.building, True
    try:
        yield
    finally:
        _thread.building = before
