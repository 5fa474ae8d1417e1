"""Strip source locations from LLVM IR, PTX and AMDGCN."""

from __future__ import annotations

import re

from tracing.analyze.passes.assertions import without_positions

_LLVM_DEBUG = re.compile(
    r",? !dbg !\d+|^[ \t]*#dbg_\w+\(.*\)\n|^; ModuleID = .*\n|^source_filename = .*\n"
    r"|^!\d+ = .*\n|^![\w.]+ = .*\n", re.MULTILINE,
)  # fmt: skip
_LINES = re.compile(r"^[ \t]*\.(?:loc|file)\b.*\n|^[ \t]*//.*\n|^\$L__tmp\d+:\n|^\.Ltmp\d+:\n", re.MULTILINE)
_SECTIONS = re.compile(
    r"^[ \t]*\.section[ \t]+\.debug\w*\s*\{.*?(?:^[ \t]*\}\n|\Z)", re.MULTILINE | re.DOTALL
)


def without_debug(text: str) -> str:
    """A text of LLVM IR or of assembly for comparisons: no locations, no comments, no debug sections."""
    text = without_positions(text)
    return _LLVM_DEBUG.sub("", _LINES.sub("", _SECTIONS.sub("", text)))
