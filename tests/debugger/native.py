"""Runs a native configuration as its debug adapter does: where it stops, and the output of commands there."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from debugger.dap import Adapter, Message
from debugger.mi import Gdb, quoted

installed_tools = importlib.import_module("vscode.installation")

KINDS = ("cppdbg", "triton-gdb", "lldb-dap")
WAIT = 150  # seconds: Inductor's sidecar imports torch twice under a Python debugger


@dataclass(frozen=True)
class Stop:
    """Where a process stopped."""

    function: str
    inside: tuple[str, ...]  # the functions that it is in, innermost first; those that are inlined, too
    file: str  # "" without line information
    line: int
    said: tuple[str, ...]  # by each command


def lldb_dap() -> str:
    """LLVM's debug adapter, "" if there is none: the one that `make vscode` finds."""
    return installed_tools.lldb_dap()


def stopped(entry: Message, *commands: str, early: Adapter | None = None) -> Stop:
    """Launch or attach, go on to the first stop, and run commands of the debugger's there."""
    return _by_mi(entry, commands) if entry["type"] == "cppdbg" else _by_dap(entry, commands, early)


def _by_mi(entry: Message, commands: tuple[str, ...]) -> Stop:
    gdb = Gdb(entry)
    try:
        if entry["request"] == "attach":
            gdb.run(f"-target-attach {entry['processId']}")
            gdb.run("-exec-continue")
        else:
            gdb.run(f"-file-exec-and-symbols {entry['program']}")
            gdb.run(f"-exec-arguments {' '.join(map(quoted, entry['args']))}")
            gdb.run("-exec-run")
        stop = gdb.stopped()
        place = stop.get("file", ""), int(stop.get("line", 0))
        return Stop(stop["func"], (stop["func"],), *place, tuple(map(gdb.console, commands)))
    finally:
        gdb.close()


def _by_dap(entry: Message, commands: tuple[str, ...], early: Adapter | None) -> Stop:
    adapter = spawned(entry, early)
    try:
        adapter.start(entry, {})
        stop = adapter.event("stopped", WAIT)
        if entry["type"] == "triton-gdb" and entry["request"] == "attach":  # as our extension does
            adapter.request("continue", threadId=stop.get("threadId", 1))
            stop = adapter.event("stopped", WAIT)
        frames = adapter.frames(stop, 5)
        frame, inside = frames[0], tuple(one["name"] for one in frames)
        asked = {"context": "repl", "frameId": frame["id"]}
        said = [adapter.request("evaluate", expression=one, **asked)["result"] for one in commands]
        adapter.request("disconnect", terminateDebuggee=True)
        path = frame.get("source", {}).get("path", "")
        return Stop(frame["name"], inside, path, frame["line"], tuple(said))
    finally:
        adapter.close()


def spawned(entry: Message, early: Adapter | None = None) -> Adapter:
    """The debug adapter of a configuration: `early`, as in our extension, if its command line is the same."""
    if entry["type"] == "lldb-dap":
        return Adapter.spawned(lldb_dap())
    words = [word for line in entry["commands"] for word in ("-iex", line)]
    command = (entry["gdb"], "-nx", "-q", *words, "-i", "dap")
    ready = early is not None and early.process is not None and early.process.args == command
    return early if early is not None and ready else Adapter.spawned(*command)


def early_gdb(variables: Mapping[str, str]) -> Adapter | None:
    """The gdb that our extension starts at F5, if a stop of the program would request one."""
    file = variables.get("TRACING_STOP_SESSION")
    requested = json.loads(Path(file).read_text()) if file else {}
    return spawned(requested) if requested.get("type") == "triton-gdb" else None
