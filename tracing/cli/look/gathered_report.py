"""Gather what a report shows: opens its runs, compares two or more of them, reads kernels and passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

from tracing import store
from tracing.analyze.align.alignment import WINDOW
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.nonfinite.first_nonfinite import first_nonfinite
from tracing.analyze.passes.pass_table import passes_by_hash
from tracing.cli.answers import hints
from tracing.cli.answers.divergence_answer import as_json as divergence_as_json
from tracing.cli.answers.pass_hints import of_passes
from tracing.cli.app import err, progress, spinner
from tracing.cli.compare.nan import commands_of_nan
from tracing.cli.options.derived import open_derived
from tracing.cli.options.run_pair import RunPair
from tracing.environment import installed_tools
from tracing.errors import Problem
from tracing.model import Compilation, Kernel, PassRecord
from tracing.report.html.chunks import Chunks
from tracing.report.html.comparison_data import SHOWN, ReportedDivergence
from tracing.report.html.kernel_data import KernelSources
from tracing.report.html.report import ReportedComparison, ReportedRun
from tracing.report.html.report import report as report_of
from tracing.report.html.run_table import run_table
from tracing.report.nonfinite_json import nonfinite_json


@dataclass(frozen=True, slots=True)
class GatheredReport:
    """The contents of a report, and the exit status of the command that writes it."""

    title: str
    index: dict[str, Any]
    chunks: Chunks
    status: int


def gathered(opened: Sequence[store.Run], *, sass: bool) -> GatheredReport:
    """Read runs for a report: one, two side by side, or a table of more.

    sass -- disassemble cubins
    """
    title = " | ".join(one.name for one in opened)
    if len(opened) > 2:
        index, status = _table(opened)
        return GatheredReport(title, index, Chunks(), status)
    with spinner("reading launches"):
        compared = _compared((opened[0], opened[1])) if len(opened) == 2 else None
    with progress("reading kernels", sum(map(_kernels, opened))) as advance:
        sides = [_side(run, sass, advance) for run in opened]
        index, chunks = report_of(sides, compared)
    return GatheredReport(title, index, chunks, _status(compared, index))


def _kernels(run: store.Run) -> int:
    launched = {one.hash for one in run.records(Kernel)}
    return len(launched | {one.hash for one in run.records(Compilation)})


def open_for_report(name: str, runs: Path) -> store.Run:
    """Open a run with the IR between its passes; prints a note if that IR cannot be derived."""
    try:
        return open_derived(name, runs)
    except Problem as problem:
        run = store.open_run(name, runs)
        err.print(f"without the IR between passes: {problem.problem}")
        return run


def _side(run: store.Run, sass: bool, advance: Any) -> ReportedRun:
    passes = {} if run.underived() and not run.growing else passes_by_hash(run)
    disassembler = installed_tools.nvdisasm() if sass else None
    answer = first_nonfinite(run)
    return ReportedRun(
        run,
        KernelSources(passes, disassembler, partial(_commands, run), advance),
        nonfinite_json(str(run.path), answer, {}, commands_of_nan(run, answer)),
        hints.of_wrong_result(run),
    )


def _commands(run: store.Run, one: Compilation, label: str, passes: Sequence[PassRecord]) -> list[str]:
    died = next((record for record in passes if record.after is None), None)
    if died is not None:
        return hints.of_unfinished(run.path, label, died)
    shown = f"tracing passes {quote(str(run.path))} --kernel {quote(label)}"
    return [shown, *of_passes(run, label, passes)]


def _compared(runs: RunPair) -> ReportedComparison:
    verdict = ComparisonVerdict.of(*runs, WINDOW)
    divergences = iter(verdict)
    shown = [ReportedDivergence(one, divergence_as_json(one, runs)) for one in islice(divergences, SHOWN)]
    for _ in divergences:  # the verdict is complete after the last one
        pass
    return ReportedComparison(verdict, shown)


def _status(compared: ReportedComparison | None, index: dict[str, Any]) -> int:
    if compared is None:
        return 2 if any(kernel["unread"] for run in index["runs"] for kernel in run["kernels"]) else 0
    differing = any(one["known"] and not one["equal"] for one in index["comparison"]["kernels"])
    return 1 if differing else compared.verdict.status


def _table(opened: Sequence[store.Run]) -> tuple[dict[str, Any], int]:
    with progress("comparing runs", len(opened) - 1) as advance:
        compared = []
        for run in opened[1:]:
            one = _compared((opened[0], run))
            compared.append((one.verdict, one.divergences[0].divergence if one.divergences else None))
            advance()
    index = run_table(opened, compared)
    return index, int(index["table"]["status"])
