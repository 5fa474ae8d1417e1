"""Drive LLVM's half of a compile: the number of its passes, their names, and the IR around each.

LLVM numbers every optional pass, from the middle end to the code generator.
`-opt-bisect-limit=N` runs the first N of them; `-opt-disable=NAME` runs none of that name. The options are
set through the C function that parses LLVM's command line. Options and counter are process-wide,
so everything here runs in a child.

Passes without a number, such as register allocation, cannot be left out. From Triton 3.9 on, AMD's code
generator belongs to another LLVM, which accepts no options from here: it numbers no pass, and prints all of
them.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from tracing.compiler.child import ChildResult, in_child
from tracing.compiler.codegen.llvm_text import LlvmPassText, printed_passes
from tracing.compiler.symbols import function

ALL = -1  # LLVM's value for a limit that leaves out nothing
# a name may have spaces: "Speculatively execute instructions"
_LINE = re.compile(r"^BISECT: (NOT )?running pass \((\d+)\) (.+?) on (.*)$", re.MULTILINE)
_PRINTING = (f"-opt-bisect-limit={ALL}", "-opt-bisect-verbose", "-print-after-all", "-print-module-scope")


@dataclass(frozen=True, slots=True)
class PrintedPass:
    """One pass that LLVM may leave out."""

    index: int  # as opt-bisect-limit counts, from 1
    name: str  # "simplifycfg"
    unit: str  # what it worked on, "function (softmax)"
    ran: bool


@dataclass(frozen=True, slots=True)
class Limited:
    """A compile with some of LLVM's passes left out."""

    ended: ChildResult
    passes: tuple[PrintedPass, ...]


def limited(
    compile: Callable[[], Any],
    limit: int,
    disabled: Collection[str] = (),
    *,
    also: int | None = None,
    seconds: float,
) -> Limited:
    """Compile with the first `limit` of LLVM's optional passes and all required ones.

    compile  -- compiles LLVM's half; its result must consist of JSON values and bytes
    limit    -- 0 leaves out all; `ALL` none, which gives the result of an ordinary compile
    disabled -- names of passes that never run
    also     -- the number of one additional pass after the limit
    seconds  -- after which the child is killed

    Cost: one compile in a child, and some MB of text to write if this process itself has compiled before.

    Raises Problem where LLVM's options cannot be set.
    """
    # Triton connects LLVM's instrumentation, which applies the limit, only if IR is dumped. The filter
    # excludes every function; LLVM reads it once, so a process that has compiled before dumps in any case,
    # and waits
    without = (f"-opt-disable={name}" for name in disabled)
    which = f"-opt-bisect-limit={limit}" if also is None else f"-opt-bisect={_up_to(limit)}{also}"
    options = (which, "-opt-bisect-verbose", "-filter-print-funcs=none", *without)
    ended = _compiled(compile, options, seconds)
    lines = _LINE.findall(ended.stderr)
    return Limited(ended, tuple(PrintedPass(int(n), name, unit, not off) for off, n, name, unit in lines))


def _up_to(limit: int) -> str:
    return f"1-{limit}," if limit > 1 else "1," if limit else ""


def printed(
    compile: Callable[[Callable[[], None]], Any], *, seconds: float, dies: bool = False
) -> tuple[ChildResult, Iterator[LlvmPassText]]:
    """Compile; return every pass of LLVM that ran, in order, with the IR before and after it.

    compile -- returns the artefacts of LLVM's half by stage, and calls its argument at the end of each stage
    seconds -- as for `limited`
    dies    -- the compile is known to crash or to time out

    If the compiler crashes or times out, the last pass is the one that was running, and has no IR after
    it. Cost: ten times that of the compile, and in memory 2 MB of text for a small kernel, 50 MB for a
    large one; twice where the compiler dies. Raises Problem as `limited` does.
    """

    def buffered() -> Any:
        # LLVM writes its output word by word, a system call each, which takes nine tenths of the time
        stream = function("_ZN4llvm4errsEv", ctypes.c_void_p)()
        buffer = function("_ZN4llvm11raw_ostream11SetBufferedEv", None, ctypes.c_void_p)
        # a new buffer: the old one is written; after each stage, as another LLVM may print in the next one
        flush = functools.partial(buffer, stream)
        flush()
        try:
            return compile(flush)
        finally:
            flush()

    if not dies:
        ended = _compiled(buffered, (*_PRINTING, "-print-before-pass-number=1"), seconds)
    if dies or ended.failure:  # the process loses its buffer, which contains the pass that is searched
        ended = _compiled(lambda: compile(lambda: None), (*_PRINTING, "-print-before-all"), seconds)
    return ended, printed_passes(ended.stderr, (ended.result or {}).get("llir", ""), died=bool(ended.failure))


def _compiled(compile: Callable[[], Any], options: tuple[str, ...], seconds: float) -> ChildResult:
    words = [word.encode() for word in ("tracing", *options)]
    argv = (ctypes.c_char_p * len(words))(*words)
    types = (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p)
    parse = function("LLVMParseCommandLineOptions", None, *types)

    def call() -> Any:
        os.putenv("LLVM_IR_ENABLE_DUMP", "1")  # only of this child
        parse(len(words), argv, None)
        return compile()

    return in_child(call, seconds)
