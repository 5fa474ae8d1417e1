"""Compute the address of an ELF symbol in a process, from the file and the process's mappings.

To look up one name, a debugger first sorts all names of the debug information, which takes a second or more.
Runs in a debugger's own Python: only the standard library.
"""

from __future__ import annotations

from pathlib import Path

from tracing import elf


def address_of(name: str, path: Path, process: int) -> int:
    """The address of a symbol in a process of this machine, by its mangled name; 0 if the file has none.

    Raises OSError where the file or the process cannot be read, or the process does not have the file.
    """
    with elf.opened(path) as file:
        value, relocatable = file.symbol(name), file.relocatable
    return value + (_start(path.resolve(), process) if relocatable else 0) if value else 0


def _start(path: Path, process: int) -> int:
    for line in Path(f"/proc/{process}/maps").read_text(encoding="utf-8").splitlines():
        words = line.split(maxsplit=5)
        if words[5:] == [str(path)] and int(words[2], 16) == 0:
            return int(words[0].partition("-")[0], 16)
    raise OSError(f"process {process} has no {path}")
