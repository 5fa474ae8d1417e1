"""Read the graphs of a run that were checked against constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tracing.model import UNMATCHED, CheckedGraph, GraphCoverage, GraphTime, NotCovered, Violation
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class GraphReport:
    """One checked graph with its violations, operators and times."""

    graph: CheckedGraph
    violations: Sequence[Violation]
    coverage: GraphCoverage
    time: GraphTime | None  # None: it was not executed


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """All checked graphs of a run together."""

    violations: int
    undecided: int
    operators: int
    supported: int
    partitions: int
    time_share: float | None  # of the time of operators, what supported ones take; None: not measured

    @property
    def status(self) -> int:
        """The exit status: 1 if a constraint is violated, 2 if one is undecided, else 0."""
        return 1 if self.violations else 2 if self.undecided else 0


def graph_reports(run: Run) -> Iterator[GraphReport]:
    """The checked graphs of a run, process by process, in the order of their checks."""
    for process in run.processes(CheckedGraph):
        coverages = {one.graph: one for one in run.view(process, GraphCoverage, GraphCoverage)}
        times = {one.graph: one for one in run.view(process, GraphTime, GraphTime)}
        violations: dict[int, list[Violation]] = {}
        for violation in run.view(process, Violation, Violation):
            violations.setdefault(violation.graph, []).append(violation)
        for graph in run.view(process, CheckedGraph, CheckedGraph):
            if graph.id in coverages:  # else the process was killed in between
                own = violations.get(graph.id, [])
                yield GraphReport(graph, own, coverages[graph.id], times.get(graph.id))


def check_status(run: Run, reports: Sequence[GraphReport]) -> int:
    """The exit status: that of the summary; 2 instead of 0 if a given constraint checked nothing."""
    unmatched = any(one.what.startswith(UNMATCHED) for one in run.records(NotCovered))
    return summary(reports).status or 2 * unmatched


def summary(reports: Sequence[GraphReport]) -> CheckSummary:
    """The sums over checked graphs."""
    violations = [one for report in reports for one in report.violations]
    coverages = [report.coverage for report in reports]
    times = [report.time for report in reports if report.time is not None]
    total = sum(one.total_s for one in times)
    return CheckSummary(
        sum(one.decided for one in violations),
        sum(not one.decided for one in violations),
        sum(one.supported + one.unsupported + one.undecided for one in coverages),
        sum(one.supported for one in coverages),
        sum(one.partitions for one in coverages),
        sum(one.supported_s for one in times) / total if total else None,
    )
