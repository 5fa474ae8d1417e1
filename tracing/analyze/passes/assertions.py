"""Leaves out where a kernel's assertions are: compiled code holds their file and line as data.

Two runs compile one kernel of Inductor from two temporary folders, so these differ in equal code.
"""

from __future__ import annotations

import re

_NAMES = ("assertFile", "__assertfail", "device assertion failed")
_FILE = re.compile(
    r'(?P<mlir>@assertFile_\d+\(|@printfFormat_\d+\((?="device assertion failed))"[^"]*"'
    r"|^@assertFile_\d+ = .*$|^[ \t]*\.global\b.*\bassertFile_\d+\[\d+\] = .*$",
    re.MULTILINE,
)
_LINE = re.compile(
    r"(@__assertfail\(ptr[^()]*?, i32 )\d+"  # LLVM IR
    r"|(\[param2\], )\d+(?=;[^{}]*\bcall\.uni\s+__assertfail\b)"  # PTX
)


def without_positions(text: str) -> str:
    """A text of MLIR, LLVM IR or PTX with neither file nor line of the kernel's assertions."""
    if not any(name in text for name in _NAMES):
        return text
    text = _FILE.sub(lambda match: match["mlir"] or "", text)
    return _LINE.sub(lambda match: match[1] or match[2], text)
