"""Compute the address of an ELF symbol in a process, from the file and the process's mappings.

A debugger that is asked for one name first sorts all names of the debug information, for a second and more.
Runs in a debugger's own Python: only the standard library.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

TABLES = (2, 11)  # kinds of section that hold symbols: all of them, and those for other files
FIXED = 2  # the kind of a program that is loaded where it says
SYMBOL = struct.Struct("<IBBHQQ")


def address_of(name: str, path: Path, process: int) -> int:
    """The address of a symbol in a process of this machine, by its mangled name; 0 if the file has none.

    Raises OSError where the file or the process cannot be read, or the process does not have the file.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:6] != b"\x7fELF\x02\x01":
            raise OSError(f"{path} is no ELF file of 64 bits, the low byte first")
        value = _value(name.encode(), data)
        moved = struct.unpack_from("<H", data, 0x10)[0] != FIXED
    return value + (_start(path.resolve(), process) if moved else 0) if value else 0


def _value(name: bytes, data: mmap.mmap) -> int:
    (table,), (size, count) = struct.unpack_from("<Q", data, 0x28), struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQI", data, table + index * size) for index in range(count)]
    for _, kind, _, _, start, length, strings in sections:
        if kind in TABLES:
            first, end = sections[strings][4], sections[strings][4] + sections[strings][5]
            for at in _places(name + b"\0", data, first, end):  # also as the end of a longer name
                if value := _defined(at - first, data, start, start + length):
                    return value
    return 0


def _defined(name: int, data: mmap.mmap, start: int, end: int) -> int:
    # the symbol begins with the offset of its name; its value is 0 if it is another file's
    for at in _places(struct.pack("<I", name), data, start, end):
        if (at - start) % SYMBOL.size == 0:
            return int(SYMBOL.unpack_from(data, at)[4])
    return 0


def _places(wanted: bytes, data: mmap.mmap, start: int, end: int) -> Iterator[int]:
    at = data.find(wanted, start, end)
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1, end)


def _start(path: Path, process: int) -> int:
    for line in Path(f"/proc/{process}/maps").read_text(encoding="utf-8").splitlines():
        words = line.split(maxsplit=5)
        if words[5:] == [str(path)] and int(words[2], 16) == 0:
            return int(words[0].partition("-")[0], 16)
    raise OSError(f"process {process} has no {path}")
