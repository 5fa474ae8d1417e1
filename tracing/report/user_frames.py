"""The frames of a recorded traceback that are the user's own code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

from tracing.model import Outcome
from tracing.model.library_files import is_library
from tracing.store import Run

_SHORT = 12  # lines of a traceback that is printed as it is
_MOST = 4  # frames that are printed, the innermost
_FRAME = re.compile(r'^  File "([^"]+)", line \d+.*\n(?:(?!  File )    .*\n)*', re.MULTILINE)
_RECORDER = "/tracing/record/"  # begins a case's traceback: names the folder of this package


def traceback_text(run: Run, outcome: Outcome) -> Iterator[str]:
    """The innermost frames of the user's code, and the command that prints all frames."""
    whole = outcome.traceback.rstrip()
    if whole.count("\n") < _SHORT:
        yield from [whole] if whole else []
        return
    own = user_frames(outcome.traceback)
    if own:
        yield "Traceback, your code only (most recent call last):"
        yield "".join(own[-_MOST:]).rstrip()
    count = whole.count("\n") + 1
    yield f"    the whole traceback, {count} lines: `tracing show {quote(str(run.path))} --json`, outcomes"


def user_frames(traceback: str) -> list[str]:
    """The frames of a traceback whose code is neither installed nor generated, the innermost last."""
    recorder = re.search(rf'File "(.*?){_RECORDER}', traceback)
    package = f"{recorder[1]}/tracing/" if recorder else None
    return [
        frame[0]
        for frame in _FRAME.finditer(traceback)
        if not is_library(frame[1]) and not (package and frame[1].startswith(package))
    ]
