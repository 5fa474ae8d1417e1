"""One native debug configuration in the words of each debugger that VSCode may have.

- cppdbg: Microsoft's C/C++ extension, which drives gdb;
- lldb: CodeLLDB;
- triton-gdb: gdb's own debug adapter (gdb 14 and later), through the small extension in `extension/`.

The two with gdb get the commands of tracing/attach/gdb.py. LLDB does not know them: it gets a breakpoint on
the class that the pass's name suggests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GDB, LLDB, DAP = "cppdbg", "lldb", "triton-gdb"
FILLED_IN = "{pid}"  # by tracing/attach/session.py
GROUP = "triton"  # of `presentation`: how an entry of ours is known
_WHO = {GDB: "gdb", LLDB: "lldb", DAP: "gdb"}


@dataclass(frozen=True)
class Native:
    """What to debug, whoever does it."""

    request: str  # "launch" or "attach"
    name: str
    program: str
    commands: list[str]  # of gdb.py
    args: list[str] = field(default_factory=list)
    pid: str = ""  # of an attach: a variable of VSCode's, or of tracing/attach/session.py
    task: str = ""  # that runs before


@dataclass(frozen=True)
class Machine:
    """What the configurations name on this machine."""

    root: Path
    python: str
    gdb: str  # "" if there is none
    sources: tuple[Path, ...] = ()  # of Triton, and of LLVM


def written(native: Native, kind: str, machine: Machine) -> dict[str, Any]:
    """The configuration for one kind of debugger."""
    name = native.name.replace("gdb", _WHO[kind])
    entry: dict[str, Any] = {"name": name, "type": kind, "request": native.request, "program": native.program}
    if native.request == "launch":
        entry |= {"args": native.args, "cwd": str(machine.root)}
    entry |= {GDB: _cppdbg, LLDB: _lldb, DAP: _dap}[kind](native, machine)
    if native.task:
        entry["preLaunchTask"] = native.task
    return entry


def setup(native: Native, machine: Machine) -> list[str]:
    """The commands that gdb runs before it reads symbols."""
    maps = [f"triton-sources {' '.join(map(str, machine.sources))}"] if machine.sources else []
    return [f"source {machine.root / 'tracing/attach/gdb.py'}", *maps, *native.commands]


def _cppdbg(native: Native, machine: Machine) -> dict[str, Any]:
    commands = ["-enable-pretty-printing", *setup(native, machine)]
    entry: dict[str, Any] = {"MIMode": "gdb", "miDebuggerPath": machine.gdb or "gdb"}
    if native.pid:
        entry["processId"] = native.pid
    if native.pid in ("", FILLED_IN):
        # break-pass's stop is none that cppdbg has set. The key is documented for launch, and read of both
        entry["unknownBreakpointHandling"] = "stop"
    return entry | {"setupCommands": [{"text": command} for command in commands]}


def _lldb(native: Native, machine: Machine) -> dict[str, Any]:
    entry: dict[str, Any] = {"initCommands": ["settings set target.inline-breakpoint-strategy always"]}
    if machine.sources:
        entry["sourceMap"] = {"/project": str(machine.sources[0])}
    if native.pid:
        entry["pid"] = native.pid
    if native.pid == FILLED_IN:
        entry["preRunCommands"] = ["breakpoint set --func-regex '{pass-class}.*::runOnOperation'"]
    return entry


def _dap(native: Native, machine: Machine) -> dict[str, Any]:
    entry: dict[str, Any] = {"gdb": machine.gdb or "gdb", "commands": setup(native, machine)}
    return entry | ({"pid": native.pid} if native.pid else {})
