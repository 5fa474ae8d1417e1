"""Lets one process at a time run a block of code, by an advisory lock on a file."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

_SECONDS_BETWEEN_ATTEMPTS = 0.1  # flock has no timeout of its own


@contextmanager
def locked(file: Path, *, seconds: float) -> Iterator[None]:
    """Hold the lock of a file while the block runs. The file is created, and stays.

    seconds -- how long to wait while another process holds the lock

    The kernel releases the lock of a process that dies. The block runs without a lock if the file cannot be
    created, or if its file system has no locks.

    Raises TimeoutError.
    """
    lock = _opened(file)
    with lock or nullcontext():
        if lock is not None:
            _wait_for(lock, seconds)
        yield


def _opened(file: Path) -> TextIO | None:
    try:
        return file.open("a")
    except OSError:
        return None


def _wait_for(lock: TextIO, seconds: float) -> None:
    end = time.monotonic() + seconds
    while _held_elsewhere(lock):
        if time.monotonic() > end:
            raise TimeoutError(f"another process has held {lock.name} for {seconds:g} s")
        time.sleep(_SECONDS_BETWEEN_ATTEMPTS)


def _held_elsewhere(lock: TextIO) -> bool:
    # takes the lock if it is free
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    return False
