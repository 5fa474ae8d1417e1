"""LLVM's half of a compile: how many of its passes run, which those are, and the IR around each.

LLVM numbers every pass that it may leave out, from the middle end to the code generator, and with
`-opt-bisect-limit=N` runs the first N. Its options are set through the C++ function that parses LLVM's
command line, and both they and the counter last as long as the process: everything here happens in a child.

Triton exports that function from 3.7 on; with 3.6 a Problem says so. What is not numbered, instruction
selection for one, cannot be left out.
"""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton._C import libtriton

from tracing.compiler.child import Ended, in_child
from tracing.errors import Problem

ALL = -1  # LLVM's word for a limit that leaves out nothing
_LINE = re.compile(r"^BISECT: (NOT )?running pass \((\d+)\) (\S+) on (.*)$", re.MULTILINE)
_DUMP = re.compile(r"(\d+)-.*-(\w+)-(before|after)\.ll")  # analyses have a template's name, and are left out


@dataclass(frozen=True, slots=True)
class LlvmPass:
    """One pass that LLVM may leave out."""

    index: int  # as opt-bisect-limit counts, from 1
    name: str  # "simplifycfg"
    unit: str  # what it worked on, "function (softmax)"
    ran: bool


@dataclass(frozen=True, slots=True)
class Limited:
    """A compile with some of LLVM's passes left out."""

    ended: Ended
    passes: tuple[LlvmPass, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The LLVM IR of the function or module that one pass worked on."""

    index: int  # among all passes of the middle end, also those that cannot be left out, from 1
    name: str  # "InstCombinePass"
    before: str
    after: str | None  # None: the pass removed what it worked on, or the process died inside it


def limited(compile: Callable[[], Any], limit: int, *, seconds: float) -> Limited:
    """Compile with the first `limit` of LLVM's passes and those that it cannot do without.

    compile -- LLVM's half is enough; its result must be made of what JSON has, and bytes
    limit   -- 0 leaves out all, `ALL` none; the result is then that of an untouched compile
    seconds -- after which the child is killed

    Cost: one compile in a child, and some MB of text to write if this process itself has compiled before.

    Raises Problem where Triton does not export LLVM's options (3.6).
    """
    # Triton connects LLVM's instrumentation, which asks the limit, only where IR is dumped. The filter leaves
    # nothing to dump; LLVM reads it once, so a process that has compiled before dumps all the same, and waits
    options = (f"-opt-bisect-limit={limit}", "-opt-bisect-verbose", "-filter-print-funcs=none")
    ended = _compiled(compile, options, seconds)
    found = _LINE.findall(ended.stderr)
    return Limited(ended, tuple(LlvmPass(int(n), name, unit, not off) for off, n, name, unit in found))


def snapshots(compile: Callable[[], Any], *, seconds: float) -> list[Snapshot]:
    """The IR before and after every pass of LLVM's middle end, in order.

    compile, seconds -- as for `limited`

    If the compiler dies, the last one has no IR after it. Cost: one compile, and 1 MB of text for a small
    kernel, 100 MB for a large one. Raises Problem as `limited` does, or if nothing was written.
    """
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        options = (f"-ir-dump-directory={folder}", "-print-before-all", "-print-after-all")
        ended = _compiled(compile, options, seconds)
        found: dict[tuple[int, str], dict[str, str]] = {}
        for path in Path(folder).iterdir():
            if match := _DUMP.fullmatch(path.name):
                number, name, side = match.groups()
                found.setdefault((int(number), name), {})[side] = _without_heading(path.read_text())
    if not found:
        raise Problem(f"LLVM wrote no IR: {ended.failure or 'it ran no pass'}")
    return [
        Snapshot(index, name, sides.get("before", ""), sides.get("after"))
        for (index, name), sides in sorted(found.items())
    ]


def _without_heading(text: str) -> str:
    # "; *** IR Dump Before SROAPass on softmax ***"
    return text.partition("\n")[2] if text.startswith("; ***") else text


def _compiled(compile: Callable[[], Any], options: tuple[str, ...], seconds: float) -> Ended:
    parse = _parser()

    def call() -> Any:
        os.putenv("LLVM_IR_ENABLE_DUMP", "1")  # of this child alone
        words = [word.encode() for word in ("tracing", *options)]
        parse(len(words), (ctypes.c_char_p * len(words))(*words), None)
        return compile()

    return in_child(call, seconds)


def _parser() -> Any:
    try:
        parse = ctypes.CDLL(libtriton.__file__).LLVMParseCommandLineOptions
    except AttributeError:  # the wheels export LLVM's symbols from 3.7 on, for extensions
        raise Problem(
            "this Triton does not export LLVM's options, so LLVM's passes cannot be told apart",
            "use Triton 3.7 or later",
        ) from None
    parse.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p]
    parse.restype = None
    return parse
