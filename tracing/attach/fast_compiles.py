"""Compile untraced up to the stop in C++ if no breakpoint is set in Python.

Until Python 3.12 debugpy traces every call, which doubles the time of a compilation. From the stop on it
traces, so that breakpoints that are set there stop in the rest of the compilation.
"""

from __future__ import annotations

from tracing.attach import python_debugger
from tracing.upstream.torch.compile_callbacks import call_around_compiles


class UntracedCompiles:
    """The compilations of this process, until it has stopped."""

    def __init__(self) -> None:
        self.untraced = self.stopped = False
        call_around_compiles(self._start, self.end)

    def _start(self) -> None:
        if not self.stopped and python_debugger.traces() and not python_debugger.can_stop():
            self.untraced = True
            python_debugger.switch(False)

    def end(self) -> None:
        """Let debugpy trace this thread as before the compilation."""
        if self.untraced:
            self.untraced = False
            python_debugger.switch(True)

    def stop(self) -> None:
        """The process has reached its stop: debugpy traces from now on."""
        self.stopped = True
        self.end()
