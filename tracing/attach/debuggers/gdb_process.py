"""What is read of the process that gdb has, and called in it: registers, memory, symbols, functions.

Nothing depends on debug information: MLIR is in Triton's wheel without any. What depends on the processor is
in `ABIS`. Runs in gdb's own Python: the standard library alone.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import gdb

DUMP = "_ZN4mlir9Operation4dumpEv"
_SYMBOL = re.compile(r"(.+?) (?:\+ \d+ )?in section")


@dataclass(frozen=True)
class Abi:
    """How a function is given pointers on one processor, and how code names a constant's address."""

    arguments: tuple[str, str]  # registers of the first two
    stack: str
    page: re.Pattern[str]  # an instruction that takes an address: its register, and the address
    offset: re.Pattern[str] | None = None  # one that adds to it: that register, and what is added


ABIS = {
    "i386:x86-64": Abi(("rdi", "rsi"), "rsp", re.compile(r"\blea\b(.*)# (0x[0-9a-f]+)")),
    "aarch64": Abi(
        ("x0", "x1"),
        "sp",
        re.compile(r"\badrp\s+(x\d+), (0x[0-9a-f]+)"),
        re.compile(r"\badd\s+x\d+, (x\d+), #(0x[0-9a-f]+)"),
    ),
}


def abi() -> Abi:
    """That of the process. Raises gdb.GdbError for a processor that is not in the table."""
    name = gdb.selected_inferior().architecture().name()
    if name not in ABIS:
        raise gdb.GdbError(
            f"this process runs on {name}, and passes are told apart by the registers of {', '.join(ABIS)}\n"
            "  break at its file and line instead, or add the processor to ABIS in gdb_process.py"
        )
    return ABIS[name]


def register(name: str) -> int:
    return int(gdb.parse_and_eval(f"(unsigned long)${name}"))


def word(address: int) -> int:
    """A pointer in memory."""
    return int.from_bytes(bytes(gdb.selected_inferior().read_memory(address, 8)), "little")


def mapped(address: int) -> bool:
    """Whether there is memory."""
    try:
        gdb.selected_inferior().read_memory(address, 1)
    except gdb.MemoryError:
        return False
    return True


def symbol(address: int) -> str:
    """The symbol that an address lies in; "" for none."""
    match = _SYMBOL.match(gdb.execute(f"info symbol {address}", to_string=True))
    return match[1] if match else ""


def address_of(name: str) -> int:
    """Where a symbol is, by its mangled name; 0 if there is none."""
    try:
        return int(gdb.parse_and_eval(f"(unsigned long)&{name}"))
    except gdb.error:
        return 0


def literal(function: int) -> str:
    """The string that a function returns: the first address that it takes; "" if it takes none."""
    own, pages = abi(), dict[str, int]()
    for instruction in gdb.selected_inferior().architecture().disassemble(function, count=12):
        if own.offset and (match := own.offset.search(instruction["asm"])) and match[1] in pages:
            return _string(pages[match[1]] + int(match[2], 16))
        if match := own.page.search(instruction["asm"]):
            pages[match[1]] = int(match[2], 16)
            if own.offset is None:
                return _string(pages[match[1]])
    return ""


def ir(operation: int) -> str:
    """An operation as text, as the process itself prints it."""
    # Operation::dump writes to file descriptor 2 of the process: a file takes its place for that long
    with tempfile.NamedTemporaryFile() as file:
        kept = _call("int", "dup", 2)
        _call("int", "dup2", _call("int", "open", f'"{file.name}"', 1), 2)
        try:
            _call("void", DUMP, operation)
        finally:
            _call("int", "dup2", kept, 2)
            _call("int", "close", kept)
        return Path(file.name).read_text(encoding="utf-8", errors="replace")


def operation(expression: str) -> int:
    """The address of an operation: of a pointer, or of any of MLIR's Op classes."""
    value = gdb.parse_and_eval(expression)
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        value = value["state"]  # what every Op class holds
    return int(value)


def _string(address: int) -> str:
    return gdb.Value(address).cast(gdb.lookup_type("char").pointer()).string()


def _call(result: str, function: str, *arguments: object) -> int:
    kinds = ", ".join("const char *" if isinstance(one, str) else "unsigned long" for one in arguments)
    words = ", ".join(map(str, arguments))
    value = gdb.parse_and_eval(f"(({result} (*)({kinds})) {function})({words})")
    return 0 if result == "void" else int(value)
