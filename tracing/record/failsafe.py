"""Ends a recording after an error of the recorder itself, so that the program continues."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tracing.errors import message
from tracing.model import Cut
from tracing.store import RunWriter

_PACKAGE = Path(__file__).parents[1]


class Failsafe:
    """Receives errors of the recorder; after the first one nothing more is recorded."""

    def __init__(self, writer: RunWriter, launches: Callable[[], int], *, strict: bool) -> None:
        """launches -- how many launches there have been
        strict   -- errors of the recorder are raised in the program
        """
        self.over = False
        self._cut: Cut | None = None  # the notice that could not be written yet
        self._writer, self._launches = writer, launches
        self._strict = strict
        if not strict:
            writer.failed = self.end

    def end(self, error: Exception) -> None:
        """End the recording: one line on standard error, and one in the run. Raises `error` if strict."""
        if self._strict:
            raise error
        if self.over or not self._writer.writes_here:
            return
        self.over = True
        cut = Cut(_described(error), self._launches())
        self._cut = None if self._writer.last(cut) else cut
        with suppress(OSError, ValueError, AttributeError):  # the program may have closed the stream
            sys.stderr.write(
                f"tracing: the recording ended after {cut.launches} launches: {cut.error}; "
                f"the run up to this point: tracing show {self._writer.path}\n"
            )

    def close(self) -> None:
        """Retry a failed write of the recording's end: the disk may have space now."""
        if self._cut is not None:
            self._writer.last(self._cut)


def _described(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if Path(one.filename).is_relative_to(_PACKAGE)]
    at = f" ({Path(own[-1].filename).relative_to(_PACKAGE.parent)}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {message(error).strip().splitlines()[0] if message(error) else ''}{at}"
