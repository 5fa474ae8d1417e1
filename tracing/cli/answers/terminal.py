"""Escape control characters of a run, as \\u001b, so that no terminal executes them.

ESC, C1 and DEL would move the cursor, set the window's title, or write the clipboard; bidirectional
marks reorder text. JSON uses the same escapes, so JSON stays unchanged.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from tracing.environment import terminal_variables
from tracing.report.control_characters import printable

_UNFOLDED = 1 << 14  # characters: more than any row of a table has


class SafeConsole(Console):
    """A console that writes its own styles, and escapes control characters in text.

    Tables are folded for terminals only. `listeners` receive the text of each print, also while the console
    is quiet.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"_environ": terminal_variables(), **options})
        self.listeners: list[Callable[[str], None]] = []

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does."""
        for one in self.listeners:
            one(" ".join(getattr(each, "plain", None) or str(each) for each in objects))
        unfolded = not self.is_terminal and any(isinstance(one, Table) for one in objects)
        width = self.width
        if unfolded:
            self.width = _UNFOLDED
        super().print(*objects, **options)
        if unfolded:
            self.width = width

    def print_lines(self, lines: Iterable[RenderableType]) -> None:
        """Print each as soon as it is known."""
        for line in lines:
            self.print(line)

    def on_broken_pipe(self) -> None:
        """Be quiet, because the reader has ended; if it read the answer, there is nothing left to do."""
        self.quiet = True
        if not self.stderr:
            raise BrokenPipeError

    @property
    def file(self) -> IO[str]:
        """The stream itself: a spinner wraps a `SafeStream`, which would escape what the spinner writes."""
        stream = super().file
        while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
            stream = inner
        return stream

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments with escaped text; only rich's own control segments move the cursor."""
        for text, style, control in super().render(renderable, options):
            if control:
                yield Segment(text, style, control)
            else:
                yield Segment(printable(text), style.update_link(None) if style and style.link else style)


class SafeStream(io.TextIOBase):
    """A standard stream that escapes control characters; consoles bypass it for their own styles."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # rich finds the stream of a console by this name

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(printable(text))
        return len(text)

    def flush(self) -> None:
        self.rich_proxied_file.flush()

    def fileno(self) -> int:
        return self.rich_proxied_file.fileno()

    def isatty(self) -> bool:
        return self.rich_proxied_file.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)  # buffer, encoding, ...


def _open_closed() -> None:
    # Python has None for a closed stream, and the next file that is opened takes its number
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


@contextmanager
def safe_streams() -> Iterator[None]:
    """While active, control characters of a run are escaped in everything that this process prints.

    A stream that is closed is then /dev/null.
    """
    given = sys.stdin, sys.stdout, sys.stderr
    _open_closed()
    streams = sys.stdout, sys.stderr
    errors = [stream.errors if isinstance(stream, io.TextIOWrapper) else None for stream in streams]
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # print characters that the locale lacks as escapes
    sys.stdout, sys.stderr = SafeStream(sys.stdout), SafeStream(sys.stderr)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = given
        for stream, before in zip(streams, errors, strict=True):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=before)
