"""Read from a libtriton.so its sections, exports, needed libraries and LLVM version."""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tracing import elf

REVISION = re.compile(rb"LLVM version [\w.]+ \((?:[^()\s]+ )?([0-9a-f]{40})\)")
VERSION = re.compile(rb"LLVM version (\d+\.\d+[\w.]*)")
# What a debugger calls in a stopped process (Triton 3.7 and later).
HOOKS = ("parsePassPipeline", "registerPass", "LLVMParseCommandLineOptions")


@dataclass(frozen=True)
class Library:
    path: Path

    @cached_property
    def sections(self) -> tuple[elf.Section, ...]:
        """All sections in the file's order; none if the file is not an ELF file of 64 bits, little-endian."""
        try:
            with elf.opened(self.path) as file:
                return file.sections
        except elf.NotElf:
            return ()

    def names(self) -> set[str]:
        return {section.name for section in self.sections}

    def needed(self) -> list[str]:
        """Libraries that the loader loads with it."""
        with elf.opened(self.path) as file:
            return file.needed()

    def exports(self) -> set[str]:
        """Mangled names that other libraries can call."""
        with elf.opened(self.path) as file:
            return file.exports()

    def hooks(self) -> list[str]:
        """The exported functions among those that a debugger calls."""
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
