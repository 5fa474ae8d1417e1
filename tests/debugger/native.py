"""Runs a native configuration as its debug adapter does: where it stops, and the output of commands there."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

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


def stopped(entry: Message, *commands: str) -> Stop:
    """Launch or attach, go on to the first stop, and run commands of the debugger's there."""
    return _by_mi(entry, commands) if entry["type"] == "cppdbg" else _by_dap(entry, commands)


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


def _by_dap(entry: Message, commands: tuple[str, ...]) -> Stop:
    adapter = spawned(entry)
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


def spawned(entry: Message) -> Adapter:
    """The debug adapter of a configuration."""
    if entry["type"] == "lldb-dap":
        return Adapter.spawned(lldb_dap())
    words = [word for line in entry["commands"] for word in ("-iex", line)]
    return Adapter.spawned(entry["gdb"], "-nx", "-q", *words, "-i", "dap")
