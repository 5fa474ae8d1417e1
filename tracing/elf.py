"""Reads ELF files of 64 bits, little-endian: sections, symbols, exported names, needed libraries, build id.

Standard library only: scripts read libraries before anything is installed, and gdb's own Python imports this
module. Nothing is loaded or executed.

Source: the ELF-64 object file format; elf(5).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_MAGIC = b"\x7fELF\x02\x01"  # ELF, 64 bits, little-endian
_SYMBOL_TABLES = (2, 11)  # section types SHT_SYMTAB and SHT_DYNSYM
_NO_CONTENT = 8  # SHT_NOBITS
_FIXED_ADDRESS = 2  # file type ET_EXEC
_NEEDED = 1  # DT_NEEDED
_BUILD_ID = 3  # NT_GNU_BUILD_ID
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size


class NotElf(OSError):
    """The file is not an ELF file of 64 bits, little-endian."""


class Section(NamedTuple):
    """One section of a file."""

    name: str
    kind: int  # SHT_PROGBITS, ...
    offset: int  # in the file
    size: int
    link: int  # index of the section with the strings that this section refers to


class ElfFile:
    """The content of one ELF file."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        """Read the table of sections; raises NotElf if the data are no such file."""
        if data[:6] != _MAGIC:
            raise NotElf("no ELF file of 64 bits, little-endian")
        self._data = data
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        rows = [struct.unpack_from("<IIQQQQI", data, table + index * size) for index in range(count)]
        self.sections = tuple(
            Section(_text_at(data, rows[names][4] + name), kind, offset, length, link)
            for name, kind, _, _, offset, length, link in rows
        )

    @property
    def relocatable(self) -> bool:
        """True if the file may be loaded at any address."""
        return bool(struct.unpack_from("<H", self._data, 0x10)[0] != _FIXED_ADDRESS)

    def section(self, name: str) -> Section | None:
        """The first section of a name."""
        return next((one for one in self.sections if one.name == name), None)

    def content(self, section: Section | None) -> bytes:
        """The bytes of a section; empty for a section without bytes in the file, and for None."""
        if section is None or section.kind == _NO_CONTENT:
            return b""
        return self._data[section.offset : section.offset + section.size]

    def symbol(self, name: str) -> int:
        """The value of a defined symbol, by its mangled name; 0 if there is none.

        Cost: a search through the strings, some 10 ms for a libtriton with all symbols.
        """
        for table in self.sections:
            if table.kind in _SYMBOL_TABLES:
                strings = self.sections[table.link]
                stop = strings.offset + strings.size
                # a match may also be the end of a longer name: linkers let names share their ends
                for at in self._matches(name.encode() + b"\0", strings.offset, stop):
                    if value := self._value(at - strings.offset, table):
                        return value
        return 0

    def exports(self) -> set[str]:
        """The mangled names that other libraries can link to."""
        rows, strings = self._with_strings(".dynsym")
        symbols = _SYMBOL.iter_unpack(rows[: len(rows) // _SYMBOL.size * _SYMBOL.size])
        return {_text_at(strings, name) for name, _, _, section, _, _ in symbols if section}

    def needed(self) -> list[str]:
        """The libraries that the loader loads with this one."""
        rows, strings = self._with_strings(".dynamic")
        entries = struct.iter_unpack("<qQ", rows[: len(rows) // 16 * 16])
        return [_text_at(strings, value) for tag, value in entries if tag == _NEEDED]

    def build_id(self) -> str:
        """The identifier that the linker gave to the file; empty if there is none."""
        note = self.content(self.section(".note.gnu.build-id"))
        if len(note) < 12:
            return ""
        owner, size, kind = struct.unpack_from("<III", note)
        start = 12 + (owner + 3) // 4 * 4
        return note[start : start + size].hex() if kind == _BUILD_ID else ""

    def _with_strings(self, name: str) -> tuple[bytes, bytes]:
        section = self.section(name)
        return self.content(section), self.content(section and self.sections[section.link])

    def _value(self, name: int, table: Section) -> int:
        # a symbol begins with the offset of its name; the value is 0 if another file defines the symbol
        for at in self._matches(struct.pack("<I", name), table.offset, table.offset + table.size):
            if (at - table.offset) % _SYMBOL.size == 0:
                return int(_SYMBOL.unpack_from(self._data, at)[4])
        return 0

    def _matches(self, wanted: bytes, start: int, stop: int) -> Iterator[int]:
        at = self._data.find(wanted, start, stop)
        while at >= 0:
            yield at
            at = self._data.find(wanted, at + 1, stop)


@contextmanager
def opened(path: Path) -> Iterator[ElfFile]:
    """An ELF file on disk, mapped into memory; raises OSError if it cannot be read, NotElf if it is none."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise NotElf(f"{path} is no ELF file of 64 bits, little-endian")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield ElfFile(data)


def _text_at(data: bytes | mmap.mmap, start: int) -> str:
    return data[start : data.find(b"\0", start)].decode(errors="replace")
