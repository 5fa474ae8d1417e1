"""Gives each run of a series of programs the same standard input."""

from __future__ import annotations

import os
import select
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from tracing.errors import Problem

_QUIET = 2.0  # seconds without a byte and without an end
_CHUNK = 1 << 16


@contextmanager
def repeated_input() -> Iterator[Callable[[], None]]:
    """While active, standard input is a file with all that it was to give; yields what rewinds it for a run.

    A terminal, and a pipe that stays open and gives nothing, are empty. Raises Problem for an input that
    begins, and does not end.
    """
    try:
        kind = os.fstat(0).st_mode
    except OSError:  # it is closed
        yield lambda: None
        return
    if stat.S_ISREG(kind):
        start = os.lseek(0, 0, os.SEEK_CUR)
        yield lambda: _rewind(start)
        return
    own = os.dup(0)
    with tempfile.TemporaryFile() as file:
        if not os.isatty(0):
            _copy_input(file)
        os.dup2(file.fileno(), 0)
        try:
            yield lambda: _rewind(0)
        finally:
            os.dup2(own, 0)
            os.close(own)


def _rewind(start: int) -> None:
    os.lseek(0, start, os.SEEK_SET)


def _copy_input(file: IO[bytes]) -> None:
    while select.select([0], [], [], _QUIET)[0]:
        chunk = os.read(0, _CHUNK)
        if not chunk:
            file.flush()
            return
        file.write(chunk)
    if file.tell():
        raise Problem(
            f"standard input gave {file.tell()} bytes, and did not end",
            "each run is given the same input: put it into a file, and repeat with `< FILE`",
        )
