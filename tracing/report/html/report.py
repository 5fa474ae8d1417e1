"""A report of one run, or of two side by side: everything that its page shows, as an index and chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.memory.evidence import memory_evidence
from tracing.model import MemoryEvidence
from tracing.report.html.chunks import Chunks
from tracing.report.html.comparison_data import (
    ReportedDivergence,
    comparison_data,
    divergence_flags,
    kernel_pairs,
)
from tracing.report.html.findings import findings
from tracing.report.html.kernel_data import KernelSources, kernel_data
from tracing.report.html.launch_data import EVIDENCE, LaunchKey, launch_data
from tracing.report.html.run_data import run_data
from tracing.store import Run, rank_of

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """One run of a report, with the answers of commands about it."""

    run: Run
    sources: KernelSources
    nan: Mapping[str, Any]  # the answer of `tracing nan --json`
    next: Sequence[str]  # commands that find the cause of a wrong result


@dataclass(frozen=True, slots=True)
class ReportedComparison:
    """The comparison of the two runs of a report."""

    verdict: ComparisonVerdict  # all of its divergences have been computed
    divergences: Sequence[ReportedDivergence]  # the first of them


def report(
    runs: Sequence[ReportedRun],
    comparison: ReportedComparison | None,
    progress: Callable[[], None] = lambda: None,
) -> tuple[dict[str, Any], Chunks]:
    """The index of a report, and its chunks.

    runs       -- one or two
    comparison -- of two
    progress   -- called for each pair of kernels
    """
    chunks = Chunks()
    marked = divergence_flags(comparison.divergences) if comparison else ({}, {})
    sides = [_side(one, chunks, dict(flags)) for one, flags in zip(runs, marked, strict=False)]
    compared: dict[str, Any] | None = None
    if comparison is not None:
        pair = runs[0].run, runs[1].run
        compared = comparison_data(pair, comparison.verdict, comparison.divergences)
        passes = runs[0].sources.passes, runs[1].sources.passes
        compared["kernels"] = kernel_pairs(pair, passes, chunks, progress)
    index = {
        "schema": SCHEMA, "runs": sides, "comparison": compared, "findings": findings(sides, compared),
        "table": None,
    }  # fmt: skip
    return index, chunks


def _side(one: ReportedRun, chunks: Chunks, flags: dict[LaunchKey, int]) -> dict[str, Any]:
    run = one.run
    evidence = _evidence(run)
    for rank, item in evidence:
        flags[rank, item.launch] = flags.get((rank, item.launch), 0) | EVIDENCE
    launches = launch_data(run, chunks, flags)
    kernels = kernel_data(run, launches, one.sources, chunks)
    return {
        **run_data(run, evidence),
        "growing": run.growing,
        "nan": dict(one.nan),
        "next": list(one.next),
        "show": f"tracing show {quote(str(run.path))} --launch ",
        "kernels": kernels,
        "launches": launches.data(chunks),
    }


def _evidence(run: Run) -> list[tuple[int, MemoryEvidence]]:
    ranks = dict.fromkeys(map(rank_of, run.processes()))
    return [(rank, item) for rank in ranks for item in memory_evidence(run, rank)]
