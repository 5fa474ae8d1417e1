"""Parses the options that select which steps are recorded, and which are kept."""

from __future__ import annotations

import re
from typing import Literal

from tracing.errors import Problem
from tracing.model import StepSelection

LEAST_DISK = 8 << 20  # bytes: kernels and IR of a small program, and some steps
_RANGE = re.compile(r"(\d*):(\d*)")


def step_selection(
    last: int | None,
    every: int,
    steps: str,
    until: Literal["", "nan", "inf", "any"],
    disk: int | None,
    *,
    digests: str,
    shared_tensors: bool,
) -> StepSelection:
    """The steps for the given options.

    steps          -- "START:STOP" as of a Python slice, without negative numbers
    digests        -- the tensors whose digests are recorded: "all", "declared", "none"
    shared_tensors -- kept tensors are shared by the ranks of a job

    Raises Problem for a malformed option, and for options that exclude each other.
    """
    start, stop = _range(steps)
    _require(last, every, disk)
    if stop is not None and stop <= start:
        raise Problem(f"--steps {steps} selects no step", "give START:STOP with START below STOP: 10:20")
    if until and digests == "none":
        raise Problem(
            f"--until {until} reads digests, and none are recorded",
            "leave out `--digests none` and `--compile-only`",
        )
    selection = StepSelection(last or 0, every, start, stop, until, disk or 0)
    if selection.drops and shared_tensors:
        given = [f"--last {last}"] if last else []
        given += [f"--disk {disk}"] if disk else []
        raise Problem(
            f"{' and '.join(given)} would delete kept tensors, which the ranks of one run share",
            "leave out `--rank-aware`: each rank then has its own run; or `--keep-inputs`",
        )
    return selection


def _require(last: int | None, every: int, disk: int | None) -> None:
    if last is not None and last < 1:
        raise Problem(f"--last {last} keeps no step", "give 1 or more: --last 50")
    if every < 1:
        raise Problem(f"--every {every} is no number of steps", "give 1 or more: --every 100")
    if disk is not None and disk < LEAST_DISK:
        raise Problem(
            f"--disk {disk} bytes has no room for kernels and their IR", f"give {LEAST_DISK >> 20}MiB or more"
        )


def _range(text: str) -> tuple[int, int | None]:
    match = _RANGE.fullmatch(text)
    if match is None:
        remedy = "give START:STOP, --steps 10:20; every n-th step: --every N; the last ones: --last N"
        raise Problem(f"{text!r} is not a range of steps", remedy)
    return int(match[1] or 0), int(match[2]) if match[2] else None
