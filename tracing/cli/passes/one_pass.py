"""One pass of `tracing passes`: its diff, or its IR as text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from tracing import store
from tracing.analyze.passes import pass_table as analysis
from tracing.analyze.passes.llvm import instructions, readable
from tracing.cli.app import out
from tracing.errors import Problem
from tracing.model import Compilation, LlvmPass, LlvmPasses, PassRecord
from tracing.report import llvm as llvm_report
from tracing.report import passes as report

PassSide: TypeAlias = Literal["before", "after"]


def side_asked_for(which: str | None, before: bool, after: bool, output: Path | None) -> PassSide | None:
    """The side of a pass whose IR is asked for; None: its diff. Raises Problem where options do not fit."""
    if before and after:
        raise Problem("--before and --after are two texts", "ask for one at a time")
    if (before or after) and which is None:
        raise Problem("--before and --after are of a pass", "name one with --pass")
    if output is not None and not (before or after):
        raise Problem("-o takes the IR of --before or --after", "add one of them")
    return "before" if before else "after" if after else None


def print_ir(run: store.Run, one: analysis.AnyPass, side: PassSide, output: Path | None) -> None:
    """Write the IR on one side of a pass to a file, or to standard output, as it was recorded."""
    blob = one.before if side == "before" else one.after
    if blob is None:
        raise Problem(f"{one.name} left no IR: it did not end", "ask for `--before`")
    text = run.text(blob)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise Problem(f"{output} cannot be written: {error.strerror}", "name another file") from None


def _print(lines: Iterable[report.Line]) -> None:
    for one in lines:
        out.print(one)


def print_pass(run: store.Run, record: PassRecord, locations: bool) -> None:
    """What a pass of MLIR did, as a diff; of one that did not end what it was given."""
    heading, before = report.pass_heading(*analysis.steps(run, [record])), run.text(record.before)
    if record.after is None:
        _print(report.reproducer_text(heading, before))
    else:
        _print(heading)
        _print(report.diff_text(before, run.text(record.after), locations))


def print_llvm_pass(
    run: store.Run, chosen: Compilation, ran: LlvmPasses, one: LlvmPass, locations: bool
) -> None:
    """What a pass of LLVM did, as a diff."""
    heading = list(llvm_report.llvm_pass_heading(chosen, *analysis.steps(run, [one], instructions)))
    before = run.text(one.before)
    if one.after is None:
        died = bool(ran.failure) and one == ran.passes[-1]
        _print(llvm_report.unprinted_text(heading, before, died=died))
    else:
        _print(heading)
        _print(report.diff_text(before, run.text(one.after), locations, readable))
