"""List LLVM's recorded passes over one kernel, and read their IR.

The middle end works on LLVM IR, the code generator first on LLVM IR and then on machine code. Both are read
as text with one instruction per line: an instruction is identified by its opcode, a call by its intrinsic.
"""

from __future__ import annotations

import re
from collections import Counter

from tracing.model import Compilation, LlvmPasses
from tracing.store import Run

_INSTRUCTION = re.compile(  # of LLVM IR: a line with more indentation continues the previous one
    r"  (?:%[\w$.-]+ = )?"
    r"(?:(?:tail |musttail |notail )?call .*?(?:@(?P<intrinsic>llvm\.[\w.]+)\(|(?P<asm>\basm )|@|%)"
    r"|(?P<opcode>[a-z][a-z0-9]+)\b)"
)
_MACHINE = re.compile(r"  (?:[%$a-z][^=\n]*? = )?(?:[a-z][\w-]* )*(?P<opcode>[A-Z]\w*)")
_LABEL = re.compile(r'^(?P<name>[\w$.-]+|"[^"]*"):(?=\s|$).*$', re.MULTILINE)
_NOISE = re.compile(
    r"^(?:!\d+ = .*|; Function Attrs: .*|[ \t]*#dbg_\w+\(.*)\n"  # metadata, which each pass numbers anew
    r"|,? ![\w.]+ !\d+|,? debug-location !\d+.*$"
    r"|(?<![ \t])[ \t]+; preds = .*$",
    re.MULTILINE,
)


def llvm_passes(run: Run, compilation: Compilation) -> LlvmPasses | None:
    """LLVM's passes over one kernel, as derived last; None if they were not derived yet."""
    records = [one for one in run.records(LlvmPasses) if one.hash == compilation.hash]
    return records[-1] if records else None


def instructions(text: str) -> Counter[str]:
    """The count of each instruction: "fadd", "llvm.maxnum.f32", "call", "asm"; "S_LOAD_DWORDX2"."""
    machine = text.startswith("# Machine code")
    matches = map((_MACHINE if machine else _INSTRUCTION).match, text.splitlines())
    return Counter(filter(None, (match and _name(match) for match in matches)))


def _name(match: re.Match[str]) -> str:
    kinds = match.groupdict()
    return kinds["opcode"] or kinds.get("intrinsic") or ("asm" if kinds.get("asm") else "call")


def readable(text: str) -> str:
    """IR for comparison and reading: without locations, with blocks named like values."""
    return _LABEL.sub(r"%\g<name>: ", _NOISE.sub("", text))
