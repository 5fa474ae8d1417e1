"""Repair what gdb's own debug adapter does wrong. Runs in gdb's own Python: only the standard library."""

from __future__ import annotations

import sys
from typing import Any

import gdb


def watch() -> None:
    """From now on, list the frames of each stop anew."""
    gdb.events.stop.connect(_forget_frames)


def _forget_frames(event: Any) -> None:
    # An editor may request frames while gdb starts a step. gdb 16 then finds none, as the process runs, and
    # keeps this empty list until the process runs anew: at the end of the step an editor shows no frame.
    frames: Any = sys.modules.get("gdb.dap.frames")
    forget = getattr(frames, "_clear_frame_ids", None)
    if forget is not None:
        forget(event)
