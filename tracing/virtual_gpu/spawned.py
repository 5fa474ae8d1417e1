"""Processes that a program spawns have no virtual GPU: say so when the first one starts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tracing.upstream.torch.spawned_processes import spawns_noted

_LINE = (
    "tracing: a process that this program spawns has no virtual GPU; fork it instead, as by "
    'multiprocessing.get_context("fork"), or compute in one process\n'
)


@contextmanager
def reported() -> Iterator[None]:
    """While active, the first process that is spawned is reported on standard error."""
    written = False

    def note() -> None:
        nonlocal written
        if not written:
            written = True
            with suppress(OSError, ValueError, AttributeError):  # the program may have closed the stream
                sys.stderr.write(_LINE)

    with spawns_noted(note):
        yield
