"""Threads that Python starts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tracing.upstream.patch import Method, patched


def around_new_threads(context: Callable[[], AbstractContextManager[object]]) -> AbstractContextManager[None]:
    """While active, each thread that is started lives inside of `context()`.

    Around the method that calls `run`, since a program's classes override that; in it an exception of the
    program has ended already, so that its traceback is as without. Source: CPython, Lib/threading.py.
    """

    def wrapper(original: Method) -> Method:
        def bootstrap(self: threading.Thread, *args: Any) -> None:
            with context():
                original(self, *args)

        return bootstrap

    return patched(threading.Thread, "_bootstrap_inner", wrapper)
