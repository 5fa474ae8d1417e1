"""Functions of libtriton, also those that it does not export.

Triton's wheels are not stripped: what the dynamic linker does not know, as nothing of LLVM before Triton 3.7,
is in the file's symbol table.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracing.errors import Problem
from tracing.upstream.libtriton import libtriton

_SYMTAB = 2  # type of the section that has all symbols
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, address, size
_EXPORTED = "PyInit_libtriton"  # in every libtriton


def function(name: str, result: Any, *arguments: Any) -> Any:
    """A C or C++ function of libtriton by its symbol, to be called through ctypes.

    result, arguments -- its types, as ctypes names them; a method's first argument is the object

    Cost: some 30 ms where it is not exported. Raises Problem where there is none, as in a stripped libtriton.
    """
    library = ctypes.CDLL(libtriton.__file__)
    prototype = ctypes.CFUNCTYPE(result, *arguments)
    if hasattr(library, name):
        return prototype((name, library))
    file = Path(libtriton.__file__)
    here = ctypes.cast(library[_EXPORTED], ctypes.c_void_p).value or 0
    return prototype(here + _address(file, name) - _address(file, _EXPORTED))


def _address(path: Path, name: str) -> int:
    # in the file; the library is loaded somewhere else, as a whole
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for symbols, strings in _tables(data):
            at = data.find(b"\0" + name.encode() + b"\0", *strings) + 1 - strings[0]
            found = data.find(struct.pack("<I", at), *symbols) if at > 0 else -1
            while found >= 0 and (found - symbols[0]) % _SYMBOL.size:
                found = data.find(struct.pack("<I", at), found + 1, symbols[1])
            if found >= 0:
                return int(_SYMBOL.unpack_from(data, found)[4])
    raise Problem(
        f"this Triton has no symbol {name}, so LLVM's passes cannot be told apart",
        "use a wheel of PyPI, which is not stripped, or a build of your own",
    )


def _tables(data: mmap.mmap) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    # where the symbols are, and the names that they point into; ELF of 64 bits
    sections, count = struct.unpack_from("<Q", data, 0x28)[0], struct.unpack_from("<H", data, 0x3C)[0]
    heads = [struct.unpack_from("<IIQQQQII", data, sections + 64 * number) for number in range(count)]
    for head in heads:
        if head[1] == _SYMTAB:
            names = heads[head[6]]
            yield (head[4], head[4] + head[5]), (names[4], names[4] + names[5])
