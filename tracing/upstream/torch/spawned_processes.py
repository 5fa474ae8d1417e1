"""Processes that Python's multiprocessing starts as new programs, by the methods spawn and forkserver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import popen_forkserver, popen_spawn_posix

from tracing.upstream.contract import require_methods
from tracing.upstream.patch import Wrapper, patched


@contextmanager
def around_spawns(wrapper: Wrapper) -> Iterator[None]:
    """While active, starting such a process calls `wrapper(original)`."""
    with (
        patched(popen_spawn_posix.Popen, "_launch", wrapper),
        patched(popen_forkserver.Popen, "_launch", wrapper),
    ):
        yield


def contract() -> None:
    """Raise Broken or another error if Python has changed what this file relies on."""
    require_methods(popen_spawn_posix.Popen, "_launch")
    require_methods(popen_forkserver.Popen, "_launch")
