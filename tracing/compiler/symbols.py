"""Call functions of libtriton, including those that it does not export.

Triton's wheels are not stripped: functions that the dynamic linker does not know, such as all of LLVM before
Triton 3.7, are in the file's symbol table.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from tracing import elf
from tracing.errors import Problem
from tracing.upstream.triton.libtriton import libtriton

_EXPORTED = "PyInit_libtriton"  # in every libtriton


def function(name: str, result: Any, *arguments: Any) -> Any:
    """A C or C++ function of libtriton by its symbol, to be called through ctypes.

    result, arguments -- the ctypes types; a method's first argument is the object

    Cost: some 30 ms for the first call of each that is not exported. Raises Problem if it is missing, as in
    a stripped libtriton.
    """
    library = ctypes.CDLL(libtriton.__file__)
    prototype = ctypes.CFUNCTYPE(result, *arguments)
    if hasattr(library, name):
        return prototype((name, library))
    file = Path(libtriton.__file__)
    here = ctypes.cast(library[_EXPORTED], ctypes.c_void_p).value or 0
    return prototype(here + _address(file, name) - _address(file, _EXPORTED))


@cache
def _address(path: Path, name: str) -> int:
    # in the file; the loader moves the library as a whole
    with elf.opened(path) as file:
        if address := file.symbol(name):
            return address
    raise Problem(
        f"this Triton has no symbol {name}, so this function of LLVM or MLIR cannot be called",
        "use a wheel of PyPI, which is not stripped, or a build of your own",
    )
