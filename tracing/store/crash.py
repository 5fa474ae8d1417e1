"""What Python noted when a fatal signal or SIGTERM ended a recorded process: `crash-<process>.txt`.

Python's `faulthandler` writes the file, in the middle of the signal's handler: the signal, then the stack of
each thread, the innermost frame first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tracing.store.run_files import read

_MOST = 1 << 20  # bytes: faulthandler writes at most 100 frames of each of 100 threads
_SIGNAL = re.compile(r"Fatal Python error: (.+)")
_THREAD = re.compile(r"^Current thread .*\n((?:  .*\n)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Crash:
    """The end of one process."""

    signal: str  # in the words of Python: "Segmentation fault", "Aborted"; "SIGTERM"
    stack: str  # of the thread that received it: `  File "train.py", line 3 in step`; empty: it has no frame


def crash_file(run: Path, process: str) -> Path:
    """The file for the crash of a process, "<host>-<rank>-<pid>"; it is empty until then."""
    return run / f"crash-{process}.txt"


def crashes(run: Path) -> list[Crash]:
    """The crashes of the processes that recorded a run."""
    texts = [read(path, _MOST).decode(errors="replace") for path in sorted(run.glob("crash-*.txt"))]
    return [crash for text in texts if (crash := _crash(text)) is not None]


def _crash(text: str) -> Crash | None:
    fatal, thread = _SIGNAL.search(text), _THREAD.search(text)
    if fatal is None and thread is None:
        return None
    # faulthandler names no signal that it was registered for
    return Crash(fatal[1] if fatal else "SIGTERM", thread[1] if thread else "")
