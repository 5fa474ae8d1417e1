"""End the processes that a case forks when they leave the case.

A fork that returns from the case, raises or calls `sys.exit` would otherwise continue with the recorder's
code: judge results, write the outcome of the run, delete the caches of its parent.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def forks_end_here() -> Iterator[None]:
    """A process that is forked inside of this context ends when it leaves it, with Python's exit status.

    Exit handlers do not run in it: they are its parent's.
    """
    owner = os.getpid()
    try:
        yield
    except BaseException as error:
        if os.getpid() != owner:
            _end(error)
        raise
    if os.getpid() != owner:
        _end(SystemExit())


def _end(error: BaseException) -> None:
    status = 1
    try:
        if not isinstance(error, SystemExit):
            traceback.print_exception(error)
        elif error.code is None or isinstance(error.code, int):
            status = (error.code or 0) & 0xFF
        else:
            sys.stderr.write(f"{error.code}\n")
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)
