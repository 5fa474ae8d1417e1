"""Have gdb's process print its own IR, by calls into it that no debug adapter reports.

gdb's debug adapter reports each call as a run and a stop, after which an editor drops its frame.
Runs in gdb's own Python: only the standard library.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import gdb
import gdb_process as process

OPERATION = "_ZN4mlir9Operation4dumpEv"  # each prints to file descriptor 2
BLOCK = "_ZN4mlir5Block4dumpEv"
VALUE = "_ZNK4mlir5Value4dumpEv"
TYPE = "_ZNK4mlir4Type4dumpEv"
ATTRIBUTE = "_ZNK4mlir9Attribute4dumpEv"

# what gdb's debug adapter forbids while it evaluates an expression that the mouse points to
_PERMISSIONS = ("may-call-functions", "may-write-registers", "may-write-memory")
# the error of a gdb before 14 on a processor with AMX, at the end of each call: gdb_with_amx.py
_NOT_WRITTEN = "write extended state status"
_refusals: list[str] = []  # why this gdb can call nothing
_printed: dict[tuple[str, int], str] = {}  # since the process last ran


def watch() -> None:
    """From now on, forget what was printed when the process or a user changes it."""
    for registry in (gdb.events.cont, gdb.events.exited, gdb.events.memory_changed, gdb.events.inferior_call):
        registry.connect(_forget)


def ir(dump: str, address: int) -> str:
    """What one of the functions above prints for the object at an address.

    Cost: 0.1 s for the first print since the process stopped, nothing for the same object afterwards.
    """
    if (dump, address) not in _printed:
        with _unnoticed():
            _printed[dump, address] = _dumped(dump, address)
    return _printed[dump, address]


def ir_of_pointer(dump: str, pointer: int) -> str:
    """What a function prints for an object that consists of one pointer, and may lie in a register."""
    if (dump, pointer) not in _printed:
        with _unnoticed(), _copied(pointer.to_bytes(8, "little")) as memory:
            _printed[dump, pointer] = _dumped(dump, memory)
    return _printed[dump, pointer]


def _dumped(dump: str, address: int) -> str:
    # for the length of the call, a file replaces file descriptor 2 of the process
    with tempfile.NamedTemporaryFile() as file, _copied(file.name.encode() + b"\0") as name:
        kept = _call("dup", 2)
        opened = _call("open", name, 1)
        _call("dup2", opened, 2)
        try:
            _call(dump, address)
        finally:
            _call("dup2", kept, 2)
            _call("close", kept)
            _call("close", opened)
        return Path(file.name).read_text(encoding="utf-8", errors="replace")


@contextmanager
def _copied(content: bytes) -> Iterator[int]:
    # the address of a copy in the process
    memory = _call("malloc", len(content))
    try:
        gdb.selected_inferior().write_memory(memory, content)
        yield memory
    finally:
        _call("free", memory)


@contextmanager
def _unnoticed() -> Iterator[None]:
    frame = gdb.selected_frame()
    with _unreported(), _permitted():
        yield
    if frame.is_valid():
        frame.select()  # at the first instruction of a function that is inlined, gdb selects that one


@contextmanager
def _unreported() -> Iterator[None]:
    # gdb's adapter reports no call that is made while the process runs, as those of a breakpoint's condition
    adapter: Any = sys.modules.get("gdb.dap.events")
    running = getattr(adapter, "inferior_running", True)
    if not running:
        adapter.inferior_running = True
    gdb.events.inferior_call.disconnect(_forget)
    try:
        yield
    finally:
        gdb.events.inferior_call.connect(_forget)
        if not running:
            adapter.inferior_running = False


@contextmanager
def _permitted() -> Iterator[None]:
    forbidden = [name for name in _PERMISSIONS if not gdb.parameter(name)]
    try:
        for name in forbidden:
            gdb.execute(f"set {name} on", to_string=True)
        yield
    finally:
        for name in forbidden:
            gdb.execute(f"set {name} off", to_string=True)


def _call(function: str, *arguments: int) -> int:
    kinds = ", ".join("unsigned long" for _ in arguments)
    words = ", ".join(map(str, arguments))
    address = _address(function, gdb.selected_inferior().pid)
    target = f"{address:#x}" if address else function
    if _refusals:
        raise gdb.GdbError(_refusals[0])
    try:
        return int(gdb.parse_and_eval(f"((unsigned long (*)({kinds})) {target})({words})"))
    except gdb.error as error:
        if _NOT_WRITTEN not in str(error):
            raise
        _refusals.append(
            f"gdb {gdb.VERSION} cannot call functions on this processor, which has AMX: take gdb 14 or "
            "later, or install a C compiler, and start gdb by `tracing debug` or, after `make vscode`, by F5"
        )
        raise gdb.GdbError(_refusals[0]) from None


@cache
def _address(function: str, pid: int) -> int:
    # by the files' own symbols: gdb would sort all names that it knows, for a second
    for file in gdb.objfiles():
        path = file.filename or ""
        if process.HOLDERS.fullmatch(path) if function.startswith("_Z") else "/libc." in path:
            with suppress(OSError):
                if address := process.address_of(function, path):
                    return address
    return 0


def _forget(_event: Any) -> None:
    _printed.clear()
