"""Translate one native debug configuration for each debug extension of VSCode.

- cppdbg: Microsoft's C/C++ extension, which drives gdb;
- lldb: CodeLLDB;
- lldb-dap: LLVM's own adapter, with LLVM's extension;
- triton-gdb: gdb's own debug adapter (gdb 14 and later), through the small extension in `extension/`.

All load the commands of tracing/attach/debuggers: all of them in gdb, only `break-pass` in LLDB.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GDB, LLDB, LLDB_DAP, DAP = "cppdbg", "lldb", "lldb-dap", "triton-gdb"
KINDS = (GDB, LLDB, LLDB_DAP, DAP)
FILLED_IN = "{pid}"  # by tracing/attach/session.py
GROUP = "triton"  # of `presentation`: how an entry of ours is known
COMMANDS = "tracing/attach/debuggers"


@dataclass(frozen=True)
class Native:
    """A native debug session, independent of the debugger."""

    request: str  # "launch" or "attach"
    name: str
    program: str
    commands: list[str]  # of tracing/attach/debuggers, in gdb and in LLDB
    args: list[str] = field(default_factory=list)
    pid: str = ""  # of an attach: a variable of VSCode's, or of tracing/attach/session.py
    forks: bool = False  # the debugged program is one that this program executes, or a fork of it


@dataclass(frozen=True)
class Machine:
    """The tools and folders of this machine that configurations name."""

    root: Path
    python: str
    gdb: str  # "" if there is none
    libtriton: str
    sources: tuple[Path, ...] = ()  # of Triton, and of LLVM


def written(native: Native, kind: str, machine: Machine) -> dict[str, Any]:
    """The configuration for one kind of debugger."""
    name = native.name.replace("gdb", "lldb" if kind in (LLDB, LLDB_DAP) else "gdb")
    entry: dict[str, Any] = {"name": name, "type": kind, "request": native.request, "program": native.program}
    if native.request == "launch":
        entry |= {"args": native.args, "cwd": str(machine.root)}
    entry |= {GDB: _cppdbg, LLDB: _lldb, LLDB_DAP: _lldb, DAP: _dap}[kind](native, machine)
    return entry


def setup(native: Native, machine: Machine, ahead: str = "") -> list[str]:
    """The commands that gdb runs before it reads symbols.

    ahead -- a library whose symbols it reads before a stopped process is attached
    """
    maps = [f"triton-sources {' '.join(map(str, machine.sources))}"] if machine.sources else []
    # gdb 16's own adapter ends its session when the parent is detached
    forks = ["set follow-fork-mode child", "set detach-on-fork off"] if native.forks else []
    few = [f"compiler-symbols {ahead}".strip()] if native.pid == FILLED_IN else []
    return [f"source {machine.root / COMMANDS / 'gdb_load.py'}", *maps, *forks, *few, *native.commands]


def _cppdbg(native: Native, machine: Machine) -> dict[str, Any]:
    commands = ["-enable-pretty-printing", *setup(native, machine)]
    entry: dict[str, Any] = {"MIMode": "gdb", "miDebuggerPath": machine.gdb or "gdb"}
    if native.pid:
        entry["processId"] = native.pid
    if native.pid in ("", FILLED_IN):
        # cppdbg did not set break-pass's breakpoint. The key is documented for launch, and read for attach,
        # too
        entry["unknownBreakpointHandling"] = "stop"
    return entry | {"setupCommands": [{"text": command} for command in commands]}


def _lldb(native: Native, machine: Machine) -> dict[str, Any]:
    first = [
        "settings set symbols.enable-lldb-index-cache true",
        f'command script import "{machine.root / COMMANDS / "lldb_commands.py"}"',
    ]
    if machine.sources:
        first.append(f'settings set target.source-map /project "{machine.sources[0]}"')
        first += [f'command script import "{script}"' for script in _formatters(machine)]
    if native.forks:
        first.append("settings set target.process.follow-fork-mode child")
        first.append("settings set target.process.stop-on-exec false")
    entry: dict[str, Any] = {"initCommands": first, "preRunCommands": native.commands}
    return entry | ({"pid": native.pid} if native.pid else {})


def _formatters(machine: Machine) -> list[Path]:
    names = ("llvm/utils/lldbDataFormatters.py", "mlir/utils/lldb-scripts/mlirDataFormatters.py")
    return [file for name in names for path in machine.sources[1:] if (file := path / name).exists()]


def _dap(native: Native, machine: Machine) -> dict[str, Any]:
    commands = setup(native, machine, machine.libtriton)
    entry: dict[str, Any] = {"gdb": machine.gdb or "gdb", "commands": commands}
    return entry | ({"pid": native.pid} if native.pid else {})
