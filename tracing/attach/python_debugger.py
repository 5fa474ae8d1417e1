"""Keep debugpy from costing time where nothing can stop in Python.

debugpy is absent from a program that no editor has started: then these functions do nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tracing.upstream.import_hook import when_imported


def describe_only_for_logs() -> None:
    """From now on, debugpy reads the metadata of every installed package only if it writes a log.

    It reads them twice before the program starts, the second time traced: 0.9 s with 86 packages.
    """
    when_imported("debugpy.common.log", _describing_for_logs)


def _describing_for_logs(log: Any) -> None:
    describe = log.describe_environment

    def describe_environment(header: str) -> None:
        if _is_logged(log):
            describe(header)

    log.describe_environment = describe_environment


def _is_logged(log: Any) -> bool:
    try:
        return log.log_dir is not None or "info" in log.stderr.levels
    except AttributeError:  # another version of debugpy
        return True


def traces() -> bool:
    """True if debugpy traces every call of this thread, as it does until Python 3.12."""
    # the program continues when debugpy's adapter has ended
    return sys.gettrace() is not None and _debugger() is not None


def switch(tracing: bool) -> None:
    """Make debugpy trace this thread, or not; does nothing if no editor is connected."""
    if _debugger() is not None:
        sys.modules["debugpy"].trace_this_thread(tracing)


@contextmanager
def untraced() -> Iterator[None]:
    """While active, debugpy does not trace this thread."""
    if not traces():
        yield
        return
    switch(False)
    try:
        yield
    finally:
        switch(True)


def can_stop() -> bool:
    """False if only uncaught exceptions stop in Python; True if a breakpoint is set, or pydevd is unknown."""
    debugger = _debugger()
    try:  # pydevd has no public function for any of them
        return bool(
            any(list(debugger.breakpoints.values()))
            or debugger.function_breakpoint_name_to_breakpoint
            or debugger.break_on_caught_exceptions
            or debugger.break_on_user_uncaught_exceptions
        )
    except AttributeError:  # another version of it
        return True


def _debugger() -> Any:
    pydevd = sys.modules.get("pydevd")
    return pydevd.get_global_debugger() if pydevd is not None and "debugpy" in sys.modules else None
