"""Print the stop at a pass, in a terminal: gdb would print the number of an internal breakpoint.

Where the source of Triton is missing, gdb prints locations, and not that it cannot open each file. Runs in
gdb's own Python: only the standard library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gdb
import gdb_process as process
from gdb_passes import PassArrival

_OF_WHEEL = "/project/"  # where Triton's wheel was built


def watch() -> None:
    """From now on, print where gdb stopped at a pass, unless an editor shows it."""
    if process.in_terminal():
        gdb.events.stop.connect(_stopped)


def missing_source(frame: gdb.Frame) -> str:
    """The file of Triton's wheel and the line of a frame, if that file is not on this machine; else ""."""
    position = frame.find_sal()
    shown = position.symtab.fullname() if position.symtab is not None else ""
    missing = shown.startswith(_OF_WHEEL) and not Path(shown).exists()
    return f"{shown.removeprefix(_OF_WHEEL)}:{position.line}" if missing else ""


def _stopped(event: Any) -> None:
    if any(isinstance(one, PassArrival) for one in getattr(event, "breakpoints", ())):
        if missing_source(gdb.selected_frame()):
            gdb.execute("set print frame-info location")
        gdb.execute("frame")
