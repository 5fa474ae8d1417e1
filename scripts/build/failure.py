"""Find the cause of a failed build: the message of the first failed file, out of thousands of lines."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

from scripts.pins import Problem

STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")  # the beginning of ninja's line for a step
FAILED = re.compile(r"FAILED: (?:\[code=\d+\] )?(\S+)")
WHY = re.compile(r"\berror\b|\bundefined\b|Error", re.I)
KILLED = re.compile(r"\bkilled\b|signal 9|out of memory|cannot allocate memory|bad_alloc", re.I)
SHOWN = 12  # lines


def diagnose(wrote: list[str], log: Path) -> Problem:
    """The cause of a failure.

    wrote -- the output from the first failed step on, or the last lines if no step failed
    log   -- where all of it is
    """
    failed = FAILED.match(wrote[0]) if wrote else None
    name = failed.group(1) if failed else "the build"
    own = message(wrote[1:]) if failed else wrote[-SHOWN:]
    if any("No space left on device" in line for line in wrote):
        return Problem(f"the disk is full at {name}", "free some; the same command continues")
    if any(KILLED.search(line) for line in own):
        return Problem(f"{name} ran out of memory", "fewer at a time: the same command with JOBS=1")
    shown = "".join(f"\n    {line}" for line in own)
    return Problem(f"{name} failed:{shown}", f"the whole log is {log}; the same command continues from here")


def message(lines: list[str]) -> list[str]:
    """The output of the first failed step, from its first error on. Its first line is the command."""
    own = list(
        takewhile(lambda line: not (STEP.match(line) or line.startswith(("FAILED", "ninja:"))), lines)
    )[1:]
    start = next((index for index, line in enumerate(own) if WHY.search(line)), 0)
    return own[start : start + SHOWN]
