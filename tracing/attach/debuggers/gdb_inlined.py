"""Keep `next`, `step` and a backtrace in the function that gdb stopped in, after a call into the process.

A function that is inlined at the address of a stop has not begun: gdb hides its frame, and `next` and `step`
treat it as a call. A call into the process, as that of `print-op`, makes gdb forget this: it then shows the
inlined function of MLIR's headers as frame 0, and steps in it, as `skip` only keeps a step from entering one.
gdb hides frames only where the process stops, so the process is stopped once more, at the same instruction,
which is not executed. Runs in gdb's own Python: only the standard library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gdb
import gdb_process as process

_STEPS = ("next", "step", "finish", "until", "advance")
_VIEWS = ("backtrace", "frame")


class _Shown:
    """The innermost frame of the last stop, as gdb showed it."""

    frame: gdb.Frame | None = None

    @classmethod
    def stopped(cls, _event: Any) -> None:
        cls.frame = gdb.newest_frame()


def watch() -> None:
    """From now on, hide functions that have not begun before each step, in a terminal before a view, too."""
    terminal = process.in_terminal()
    if not terminal and "gdb.dap" not in sys.modules:  # MI reports each stop to the editor
        return
    gdb.events.stop.connect(_Shown.stopped)
    for name in (*_STEPS, *(_VIEWS if terminal else ())):
        gdb.execute(f"define hook-{name}\npython import gdb_inlined; gdb_inlined.hide()\nend")


def hide() -> None:
    """Hide the inlined functions that gdb hid at the last stop; do nothing if they are hidden."""
    try:
        if not _reappeared():
            return
        selected = gdb.selected_frame()
        with _unreported(), _own_breakpoints_only():
            _stop_here()
        if selected.is_valid():
            selected.select()
    except gdb.error:  # no process, or one that runs
        return


def _reappeared() -> bool:
    shown, newest = _Shown.frame, gdb.newest_frame()
    return shown is not None and shown.is_valid() and shown != newest and shown.pc() == newest.pc()


def _stop_here() -> None:
    # `jump` to a breakpoint executes nothing; no other thread may run meanwhile
    here = gdb.newest_frame().pc()
    point = gdb.Breakpoint(f"*{here:#x}", internal=True, temporary=True)
    point.silent = True
    try:
        gdb.execute(f"with scheduler-locking on -- with confirm off -- jump *{here:#x}", to_string=True)
    finally:
        if point.is_valid():
            point.delete()


@contextmanager
def _own_breakpoints_only() -> Iterator[None]:
    # one of a user's at this address would count a hit, and show the inlined functions
    enabled = [one for one in gdb.breakpoints() if one.enabled]
    for one in enabled:
        one.enabled = False
    try:
        yield
    finally:
        for one in enabled:
            if one.is_valid():
                one.enabled = True


@contextmanager
def _unreported() -> Iterator[None]:
    # gdb's adapter would report a run and a stop to the editor
    adapter: Any = sys.modules.get("gdb.dap.events")
    handlers = [
        (registry, handler)
        for registry, name in ((gdb.events.cont, "_cont"), (gdb.events.stop, "_on_stop"))
        if (handler := getattr(adapter, name, None)) is not None
    ]
    for registry, handler in handlers:
        registry.disconnect(handler)
    try:
        yield
    finally:
        for registry, handler in handlers:
            registry.connect(handler)
