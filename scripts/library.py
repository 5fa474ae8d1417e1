"""Read from a libtriton.so its sections, exports, needed libraries and LLVM version.

A 64-bit little-endian ELF file is a header, then a table of sections; nothing is loaded or executed.
"""

from __future__ import annotations

import mmap
import re
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

REVISION = re.compile(rb"LLVM version [\w.]+ \((?:[^()\s]+ )?([0-9a-f]{40})\)")
VERSION = re.compile(rb"LLVM version (\d+\.\d+[\w.]*)")
# What a debugger calls in a stopped process (Triton 3.7 and later).
HOOKS = ("parsePassPipeline", "registerPass", "LLVMParseCommandLineOptions")


@dataclass(frozen=True)
class Section:
    name: str
    offset: int
    size: int
    link: int  # index of the section with its strings


@dataclass(frozen=True)
class Library:
    path: Path

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All sections in the file's order; empty for any other kind of file."""
        with self.path.open("rb") as file:
            header = file.read(64)
            if header[:6] != b"\x7fELF\x02\x01":
                return ()
            (offset,) = struct.unpack_from("<Q", header, 0x28)
            size, count, strings = struct.unpack_from("<HHH", header, 0x3A)
            file.seek(offset)
            rows = [struct.unpack_from("<IIQQQQI", file.read(size)) for _ in range(count)]
            file.seek(rows[strings][4])
            names = file.read(rows[strings][5])
        return tuple(Section(text_at(names, row[0]), row[4], row[5], row[6]) for row in rows)

    def names(self) -> set[str]:
        return {section.name for section in self.sections}

    def content(self, section: Section) -> bytes:
        with self.path.open("rb") as file:
            file.seek(section.offset)
            return file.read(section.size)

    def named(self, name: str) -> tuple[bytes, bytes]:
        """A section and its string table; both empty if the file lacks the section."""
        section = next((one for one in self.sections if one.name == name), None)
        if section is None:
            return b"", b""
        return self.content(section), self.content(self.sections[section.link])

    def needed(self) -> list[str]:
        """The libraries that the loader also loads."""
        rows, strings = self.named(".dynamic")
        entries = struct.iter_unpack("<qQ", rows[: len(rows) // 16 * 16])
        return [text_at(strings, value) for tag, value in entries if tag == 1]

    def exports(self) -> set[str]:
        """Mangled names that other libraries can call."""
        rows, strings = self.named(".dynsym")
        symbols = struct.iter_unpack("<IBBHQQ", rows[: len(rows) // 24 * 24])
        return {text_at(strings, name) for name, _, _, section, _, _ in symbols if section}

    def hooks(self) -> list[str]:
        """Which of the functions that a debugger calls are exported."""
        exported = self.exports()
        return [hook for hook in HOOKS if any(hook in name for name in exported)]

    def llvm_commit(self) -> str:
        """The commit of the linked LLVM, as LLVM embeds it; empty if it embeds none."""
        return self.first(REVISION)

    def llvm_version(self) -> str:
        return self.first(VERSION)

    def first(self, pattern: re.Pattern[bytes]) -> str:
        with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            match = pattern.search(data)
            return match.group(1).decode() if match else ""


def text_at(strings: bytes, start: int) -> str:
    return strings[start : strings.find(b"\0", start)].decode(errors="replace")
