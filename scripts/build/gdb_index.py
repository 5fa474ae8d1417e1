"""Shrink the index of names that the linker writes for gdb, so that a debugger reads it sooner.

The linker lists a type once for each file that defines it, although one entry is enough for a debugger. gdb
16 skips the others; gdb 18 creates an entry for each of them at start-up. If a name has another meaning in
one file, gdb still finds that meaning in the frames of this file, because it searches the file first. gdb's
manual describes the format in "Index Section Format".
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

from scripts.build.library import Library

VERSIONS = (7, 8)  # what lld and mold write
TYPE = 1  # the kind of a name


def name_types_once(path: Path) -> int:
    """Keep one entry for each type in the index of a library, in place; returns how many are removed.

    All functions and variables stay. Without such an index nothing changes.
    """
    section = next((one for one in Library(path).sections if one.name == ".gdb_index"), None)
    if section is None:
        return 0
    left_out = 0
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        for offset in sorted(set(lists(data, section.offset))):
            (count,) = struct.unpack_from("<I", data, offset)
            entries = struct.unpack_from(f"<{count}I", data, offset + 4)
            kept = once(entries)
            # the bytes after them stay in the file, unused
            struct.pack_into(f"<{len(kept) + 1}I", data, offset, len(kept), *kept)
            left_out += count - len(kept)
    return left_out


def lists(data: mmap.mmap, start: int) -> Iterator[int]:
    """The position of each name's list of files, in an index that begins at an offset."""
    version, *tables = struct.unpack_from("<6I", data, start)
    if version not in VERSIONS:
        return
    names, pool = tables[-2:]
    for name, files in struct.iter_unpack("<II", data[start + names : start + pool]):
        if name or files:
            yield start + pool + files


def once(entries: tuple[int, ...]) -> list[int]:
    """The entries of a name, with only the first of its type entries."""
    types = [entry for entry in entries if kind(entry) == TYPE]
    return [entry for entry in entries if kind(entry) != TYPE or entry == types[0]]


def kind(entry: int) -> int:
    return (
        entry >> 28 & 7
    )  # the bits above tell whether the name is local to the file; those below are the file's number
