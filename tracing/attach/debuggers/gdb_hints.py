"""Explain at a stop, once each, what this Triton lacks, variables or the source; and name our commands.

Runs in gdb's own Python: only the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gdb
import gdb_process as process
from gdb_stops import missing_source

_LOST = (
    "variables that are <optimized out> are lost in this Triton, which was built with optimization\n"
    "  `make triton` builds one that shows every variable; here, $op() and $module() show the IR\n"
)
_NO_SOURCE = (
    "{position} is not on this machine: `make venv SOURCE=1` fetches the source of Triton's wheel; "
    "then `make vscode`, and start anew\n"
)
_COMMANDS = "`print-op` shows the IR that the pass is about to change; `help triton` lists more commands\n"


def watch() -> None:
    """From now on, explain the first lost variable, the first line without source, and our commands."""
    for hint in (_no_source, _lost, _commands):
        Hint(hint)


class Hint:
    """A text that is printed at the first stop that has one."""

    def __init__(self, text: Callable[[gdb.Frame], str]) -> None:
        self.text = text
        gdb.events.stop.connect(self._stopped)

    def _stopped(self, _event: Any) -> None:
        try:
            text = self.text(gdb.selected_frame())
        except (gdb.error, RuntimeError):  # a frame without debug information
            return
        if text:
            gdb.events.stop.disconnect(self._stopped)
            process.say(text)


def _lost(frame: gdb.Frame) -> str:
    return _LOST if any(one.is_optimized_out for one in _variables(frame)) else ""


def _no_source(frame: gdb.Frame) -> str:
    if process.in_terminal():  # `tracing debug` and `tracing attach` have said it
        return ""
    position = missing_source(frame)
    return _NO_SOURCE.format(position=position) if position else ""


def _commands(frame: gdb.Frame) -> str:
    at_pass = "::runOnOperation" in (frame.name() or "")
    return _COMMANDS if at_pass and process.is_typed() else ""


def _variables(frame: gdb.Frame) -> Iterator[gdb.Value]:
    block: gdb.Block | None = frame.block()
    while block is not None and not block.is_global:
        for one in block:
            if one.is_variable or one.is_argument:
                yield one.value(frame)
        block = None if block.function else block.superblock
