"""Processes that a program spawns have no virtual GPU: say so when the first one starts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tracing.upstream.patch import Method
from tracing.upstream.torch.spawned_processes import around_spawns

_LINE = (
    "tracing: a process that this program spawns has no virtual GPU; fork it instead, as by "
    'multiprocessing.get_context("fork"), or compute in one process\n'
)


@contextmanager
def reported() -> Iterator[None]:
    """While active, the first process that is spawned is reported on standard error."""
    written = False

    def wrapper(original: Method) -> Method:
        def launch(*args: Any, **kwargs: Any) -> Any:
            nonlocal written
            if not written:
                written = True
                with suppress(OSError, ValueError, AttributeError):  # the program may have closed the stream
                    sys.stderr.write(_LINE)
            return original(*args, **kwargs)

        return launch

    with around_spawns(wrapper):
        yield
