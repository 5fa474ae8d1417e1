"""Capture the compiler's output to file descriptor 2, which bypasses Python's sys.stderr.

MLIR's diagnostics, LLVM's fatal errors and failed assertions go only there.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout

from tracing.errors import Problem

_ERROR = re.compile(r"\b(error|fatal)\b\s*:")
_POSITION = re.compile(r'^loc\(.*?("[^"]*":\d+:\d+).*\): (?=error: )')  # the innermost of a call stack
_LAST_WORDS = re.compile(
    r"^(?:LLVM ERROR: .*|.*\bAssertion `.*|.+\nUNREACHABLE executed at .*)", re.MULTILINE
)
_LINES = 8  # of diagnostics that a message shows
_lock = threading.RLock()


@contextmanager
def collected() -> Iterator[Callable[[], str]]:
    """While active, captures descriptor 2; the function that this yields returns the captured text.

    At the end it is written to the original descriptor, unless a Problem, which contains it, ends the
    context. The output of other threads is included; one such context is active at a time.
    """
    quiet = redirect_stdout(io.StringIO())  # Triton prints the whole PTX where ptxas refuses it
    with _lock, quiet, _file() as file:
        start = os.fstat(file).st_size
        yield lambda: os.pread(file, 1 << 24, start).decode(errors="replace")


def last_words(text: str) -> str:
    """The line that LLVM writes before it aborts: `LLVM ERROR: …`, an assertion, or why code is unreachable.

    "": it wrote none.
    """
    match = _LAST_WORDS.search(text)
    return match[0].partition("\n")[0] if match else ""


def errors_in(text: str) -> str:
    """The first few errors in the compiler's output, of the location of each only the innermost position.

    A location of LLVM's dialect contains debug information, in thousands of characters.
    """
    # a stack, the whole module, lines of source
    errors = [_POSITION.sub(r"loc(\1): ", line) for line in text.splitlines() if _ERROR.search(line)]
    return "\n  ".join(errors[:_LINES])


@contextmanager
def _file() -> Iterator[int]:
    # a file that receives everything written to descriptor 2
    sys.stderr.flush()
    if stat.S_ISREG(os.fstat(2).st_mode) and fcntl.fcntl(2, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR:
        yield 2  # collected already, as in a child process: the text of an abort must stay in that file
        return
    with tempfile.TemporaryFile() as file:
        before, reported = os.dup(2), False
        os.dup2(file.fileno(), 2)
        try:
            yield file.fileno()
        except Problem:
            reported = True
            raise
        finally:
            os.dup2(before, 2)
            os.close(before)
            if not reported:
                file.seek(0)
                os.write(2, file.read())
