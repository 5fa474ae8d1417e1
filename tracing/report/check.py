"""Checked graphs as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from rich.text import Text

from tracing.analyze.runs.graph_checks import CheckSummary, GraphReport, summary
from tracing.model import Violation
from tracing.report.text import Line, plural
from tracing.store import Run


def check_text(reports: Sequence[GraphReport]) -> Iterator[Line]:
    """Violations graph by graph, then the share of supported operators."""
    for report in reports:
        yield _graph_text(report)
        yield from _violation_lines(report.violations)
        for operator, count in sorted(report.coverage.operators.items(), key=lambda one: -one[1]):
            yield Text.assemble("    unsupported  ", f"{operator} × {count}", style="dim")
    yield _summary_text(summary(reports))


def _graph_text(report: GraphReport) -> Text:
    graph, coverage = report.graph, report.coverage
    of = coverage.supported + coverage.unsupported + coverage.undecided
    text = f": {plural(coverage.partitions, 'partition')}, "
    text += f"{coverage.supported} of {plural(of, 'operator')} supported"
    if report.time is not None and report.time.total_s:
        share = _percent(report.time.supported_s / report.time.total_s)
        text += f", which take {share} of {report.time.total_s * 1e3:.3g} ms"
    return Text.assemble((f"graph {graph.compile_id} {graph.kind}", "bold"), text)


def _violation_lines(violations: Sequence[Violation]) -> Iterator[Line]:
    # violations of one operator at several nodes of one Python line are printed as one line
    count = Counter(_alike(one) for one in violations)
    first: dict[object, Violation] = {}
    for one in violations:
        first.setdefault(_alike(one), one)
    for one in first.values():
        mark = ("✗", "red") if one.decided else ("?", "yellow")
        times = f" × {count[_alike(one)]}" if count[_alike(one)] > 1 else ""
        what = f" {one.node} ({one.operator}){times}: {one.found}; needed: {one.required}"
        yield Text.assemble("  ", mark, what)
        if at := ": ".join(filter(None, (one.python, one.code))):
            yield Text.assemble("      ", (at, "dim"))


def _alike(one: Violation) -> tuple[object, ...]:
    return one.constraint, one.operator, one.found, one.required, one.decided, one.python, one.code


def _summary_text(total: CheckSummary) -> str:
    parts = [plural(total.violations, "violation")]
    if total.undecided:
        parts.append(f"{total.undecided} undecided for other sizes")
    supported = f"{total.supported} of {plural(total.operators, 'operator')} supported"
    parts.append(f"{supported} in {plural(total.partitions, 'partition')} (connected supported operators)")
    if total.time_share is not None:
        parts.append(f"supported operators take {_percent(total.time_share)} of the measured time")
    return "; ".join(parts)


def _percent(share: float) -> str:
    # 100% and 0% are exact: an operator that is not supported takes some time
    if 0 < share < 0.01:
        return "less than 1%"
    return "more than 99%" if 0.99 < share < 1 else f"{share:.0%}"


def check_json(run: Run, reports: Sequence[GraphReport], status: int) -> dict[str, Any]:
    """The object of `tracing check --json`."""
    total = summary(reports)
    return {
        "run": str(run.path),
        "status": status,
        "violations": total.violations,
        "undecided": total.undecided,
        "operators": total.operators,
        "supported": total.supported,
        "partitions": total.partitions,
        "time_share": total.time_share,
        "constraints": sorted({one for report in reports for one in report.graph.constraints}),
        "graphs": [_graph_json(report) for report in reports],
    }


def _graph_json(report: GraphReport) -> dict[str, Any]:
    fields = ("constraint", "node", "operator", "found", "required", "decided", "python", "code")
    return {
        "compile_id": report.graph.compile_id,
        "kind": report.graph.kind,
        "backend": report.graph.backend,
        "supported": report.coverage.supported,
        "unsupported": report.coverage.unsupported,
        "undecided": report.coverage.undecided,
        "partitions": report.coverage.partitions,
        "unsupported_operators": dict(report.coverage.operators),
        "supported_s": report.time.supported_s if report.time else None,
        "total_s": report.time.total_s if report.time else None,
        "violations": [
            {name: value for name, value in msgspec.structs.asdict(one).items() if name in fields}
            for one in report.violations
        ],
    }
