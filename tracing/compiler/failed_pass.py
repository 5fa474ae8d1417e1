"""Execute a failed recorded pass in a child process, and return the compiler's message."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from tracing.compiler.child import in_child
from tracing.compiler.resume import resume, resume_point_before
from tracing.compiler.stderr import last_words
from tracing.errors import Problem
from tracing.model import Blob, PassRecord

SECONDS = 60.0  # that the pass may take
LINES = 4  # of what it reports
_NOISE = re.compile(  # MLIR adds these to what a pass reports
    r"A signal was caught|Failures have been detected|Pipeline failed while executing|^pass \d+, .*, failed: "
)
_WORDS = ("Assertion", "LLVM ERROR", "error:")  # marks of lines that give the reason if a process dies
_LOCATION = re.compile(r'^(?:loc\()?"?([^":()]+\.py)"?:(\d+)(?::\d+\)?)*:? *(?:error: *)?')


def reported(
    record: PassRecord, passes: Sequence[PassRecord], text: Callable[[Blob], str]
) -> tuple[str, list[str]]:
    """How a pass ends when it is executed on its recorded input, and its diagnostics.

    passes -- of its compilation, in order
    text   -- the IR in a blob

    Returns ("", []) if the pass succeeds. Cost: a second or two.
    """
    try:
        point = resume_point_before(record, passes, text)
    except (Problem, OSError):  # its IR was not derived
        return "its input IR is not known", []
    ended = in_child(lambda: bool(resume(record.compilation, point, last=record.stage)), SECONDS)
    lines = dict.fromkeys(line.strip() for line in [*ended.stderr.splitlines(), *ended.failure.splitlines()])
    marks = (*_WORDS, last_words(ended.stderr) or _WORDS[0])
    reasons = [line for line in lines if any(word in line for word in marks) and not _NOISE.search(line)]
    return ended.failure, reasons[:LINES]


def located(reason: str) -> tuple[str, str]:
    """A diagnostic without its location, and the location: `x.py:3`; empty if it names none."""
    match = _LOCATION.match(reason)
    if match is None:
        return reason, ""
    return reason[match.end() :] or reason, f"{Path(match[1]).name}:{match[2]}"
