"""A report of more than two runs: which kernels differ in which runs, and where each run leaves the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from shlex import quote
from typing import Any, TypeAlias

from tracing.analyze.compare.divergence_kinds import Divergence
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.runs.kernel_table import KernelOfRuns, kernel_table
from tracing.analyze.runs.program_differences import incomparable
from tracing.report.compare.divergence import divergence_text
from tracing.report.html.findings import BAD, DOUBT, FINE, finding
from tracing.report.html.report import SCHEMA
from tracing.report.html.run_data import run_summary
from tracing.store import Run

ComparedWithFirst: TypeAlias = Sequence[tuple[ComparisonVerdict, Divergence | None]]


def run_table(runs: Sequence[Run], compared: ComparedWithFirst) -> dict[str, Any]:
    """The index of a report of more than two runs.

    compared -- of each run after the first its comparison with the first, and its first divergence
    """
    kernels = kernel_table(runs)
    sides: list[dict[str, Any]] = [{"status": 0, "found": 0, "first": None, "next": []}]
    sides += [_side(runs[0], run, *one) for run, one in zip(runs[1:], compared, strict=True)]
    statuses = {one["status"] for one in sides}
    differs = any(row.code_differs for row in kernels) or 1 in statuses
    table = {
        "status": 1 if differs else max(statuses),
        "kernels": [{"name": row.name, "differs": row.differs, "runs": _cells(row)} for row in kernels],
        "compared": sides,
    }
    return {
        "schema": SCHEMA, "runs": [run_summary(run) for run in runs], "comparison": None,
        "findings": list(_findings(runs, kernels, sides)), "table": table,
    }  # fmt: skip


def _cells(row: KernelOfRuns) -> list[dict[str, Any] | None]:
    return [asdict(one) if one else None for one in row.cells]


def _side(first: Run, run: Run, verdict: ComparisonVerdict, divergence: Divergence | None) -> dict[str, Any]:
    title = None
    if divergence is not None:
        title = next(iter(divergence_text(divergence))).plain.lstrip("✗ ").partition(": ")[2]
    elif verdict.status == 1:
        title = "no launch differs; the start, the results or the ending do"
    paths = f"{quote(str(first.path))} {quote(str(run.path))}"
    anyway = " --anyway" if incomparable(first.info, run.info) else ""
    return {
        "status": verdict.status, "found": verdict.found, "first": title,
        "next": [f"tracing compare {paths}{anyway}", f"tracing report {paths}"],
    }  # fmt: skip


def _findings(
    runs: Sequence[Run], kernels: Sequence[KernelOfRuns], sides: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    known = []
    for row in [one for one in kernels if one.code_differs][:3]:
        lines = [_equal(names) for names in _groups(runs, row)]
        known.append(finding(BAD, f"the code of {row.name} differs", lines))
    for run, side in zip(runs, sides, strict=True):
        if side["status"] == 1:
            title = f"{run.name} differs from {runs[0].name}"
            count = f"launches that differ: {side['found']}"
            known.append(finding(BAD, title, [side["first"] or "", count], side["next"]))
        elif side["status"] == 2:
            known.append(finding(DOUBT, f"{run.name} could be compared with {runs[0].name} in part only"))
    return known or [finding(FINE, f"all {len(runs)} runs are equal")]


def _equal(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} have equal code" if len(names) > 1 else f"{names[0]} has code of its own"


def _groups(runs: Sequence[Run], row: KernelOfRuns) -> list[list[str]]:
    groups: dict[int, list[str]] = {}
    for run, cell in zip(runs, row.cells, strict=True):
        if cell is not None:
            groups.setdefault(cell.code, []).append(run.name)
    return list(groups.values())
