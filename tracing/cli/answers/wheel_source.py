"""Warn at the start of a debugger that its stops will show no C++ code."""

from __future__ import annotations

from tracing.attach.wheel_source import MISSING
from tracing.cli.app import err
from tracing.environment import installed_tools


def warn_without_source() -> None:
    """Print one line, with the remedy, if Triton is a wheel and its source was not fetched."""
    if installed_tools.lacks_source():
        err.print(MISSING)
