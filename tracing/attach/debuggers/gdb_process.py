"""Read registers, memory and symbols of gdb's process.

Nothing depends on debug information, because the MLIR in Triton's wheel has none. `ABIS` holds what depends
on the processor. Runs in gdb's own Python: only the standard library.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import elf_symbol
import gdb

TRITON = "libtriton.so"
# files that may contain MLIR: Triton's library, the tools that run passes, a distribution's shared MLIR
HOLDERS = re.compile(rf".*/(?:{re.escape(TRITON)}|[\w-]+-opt(?:-\d+)?|libMLIR[^/]*)")
_SYMBOL = re.compile(r"(.+?) (?:\+ \d+ )?in section")


def _relative_to_the_next(code: bytes, at: int) -> int:
    # lea, with the distance from its end
    match = re.search(rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](.{4})", code, re.S)
    if match is None:
        return 0
    return at + match.end() + int.from_bytes(match[1], "little", signed=True)


def _in_a_page(code: bytes, at: int) -> int:
    # adrp, with pages of 4 KiB from this one, and an add to the same register
    pages: dict[int, int] = {}
    for index in range(0, len(code), 4):
        word = int.from_bytes(code[index : index + 4], "little")
        if word & 0x9F000000 == 0x90000000:
            distance = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
            distance -= (distance & 1 << 20) << 1  # its highest bit is the sign
            pages[word & 31] = (at + index & ~0xFFF) + (distance << 12)
        elif word & 0xFFC00000 == 0x91000000 and word >> 5 & 31 in pages:
            return pages[word >> 5 & 31] + (word >> 10 & 0xFFF)
    return 0


@dataclass(frozen=True)
class Abi:
    """The calling convention of one processor, and how its code encodes a constant's address."""

    arguments: tuple[str, str]  # registers of the first two
    stack: str
    taken: Callable[[bytes, int], int]  # the first address that code uses, by the code's address; 0 for none


ABIS = {
    "i386:x86-64": Abi(("rdi", "rsi"), "rsp", _relative_to_the_next),
    "aarch64": Abi(("x0", "x1"), "sp", _in_a_page),
}
_LOOKED_AT = 64  # bytes at the beginning of a function


def abi() -> Abi:
    """The ABI of the process. Raises gdb.GdbError for a processor that is not in the table."""
    name = gdb.selected_inferior().architecture().name()
    if name not in ABIS:
        raise gdb.GdbError(
            f"this process runs on {name}, and passes are identified by the registers of {', '.join(ABIS)}\n"
            "  break at its file and line instead, or add the processor to ABIS in gdb_process.py"
        )
    return ABIS[name]


def say(text: str) -> None:
    """Print from a function that gdb calls at an event, in a debug adapter too."""
    if "gdb.dap" in sys.modules:  # it drops what is printed until the process has stopped
        gdb.post_event(lambda: gdb.write(text))
    else:
        gdb.write(text)


def in_terminal() -> bool:
    """True if a person reads what gdb prints; False under an editor, by MI or a debug adapter."""
    return not any(re.fullmatch(rb"--?i(n\w*)?(=.*)?", word) for word in _own_words())


def is_typed() -> bool:
    """True if a person types the commands."""
    return in_terminal() and b"-batch" not in _own_words()


def _own_words() -> list[bytes]:
    return Path("/proc/self/cmdline").read_bytes().partition(b"\0--args\0")[0].split(b"\0")


def register(name: str) -> int:
    return int(gdb.parse_and_eval(f"(unsigned long)${name}"))


def word(address: int) -> int:
    """A pointer in memory."""
    return int.from_bytes(bytes(gdb.selected_inferior().read_memory(address, 8)), "little")


def mapped(address: int) -> bool:
    """True if the address is mapped."""
    try:
        gdb.selected_inferior().read_memory(address, 1)
    except gdb.MemoryError:
        return False
    return True


def symbol(address: int) -> str:
    """The symbol that an address lies in; "" for none."""
    match = _SYMBOL.match(gdb.execute(f"info symbol {address}", to_string=True))
    return match[1] if match else ""


def address_of(name: str, path: str) -> int:
    """The address of a symbol of a file, by its mangled name; 0 if the file lacks it."""
    with suppress(OSError):  # the process runs on another machine, so only gdb can read its file
        return elf_symbol.address_of(name, Path(path), gdb.selected_inferior().pid)
    try:
        return int(gdb.parse_and_eval(f"(unsigned long)&{name}"))
    except gdb.error:
        return 0


def literal(function: int) -> str:
    """The string that a function returns: the first address that it takes; "" if it takes none."""
    # gdb's disassembler would read the debug information of each function that it names
    code = bytes(gdb.selected_inferior().read_memory(function, _LOOKED_AT))
    address = abi().taken(code, function)
    return _string(address) if address else ""


def operation(expression: str) -> int:
    """The address of an operation: of a pointer, or of any of MLIR's Op classes."""
    value = gdb.parse_and_eval(expression)
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        value = value["state"]  # a member of every Op class
    return int(value)


def _string(address: int) -> str:
    return gdb.Value(address).cast(gdb.lookup_type("char").pointer()).string()
