"""`tracing compare --ranks`: which rank of a job left the others first."""

from __future__ import annotations

from tracing import store
from tracing.analyze.ranks.rank_events import RankEvent
from tracing.analyze.ranks.ranks import RankComparison
from tracing.analyze.runs.winners import choices
from tracing.cli import hints
from tracing.cli.app import out
from tracing.errors import Problem
from tracing.report.ranks import parting_text, summary_text
from tracing.report.text import plural


def ranks_compared(run: store.Run, limit: int) -> int:
    """Compare the ranks of one run and print what was found; the status, as of `tracing compare`."""
    comparison = RankComparison(run)
    count = 0
    for count, found in enumerate(comparison, 1):
        if count <= limit:
            for line in parting_text(found, first=count == 1):
                out.print(line)
            for command in _next(run, found.event) if count == 1 else ():
                out.print(f"    next      {command}", markup=False)
    if len(comparison.ranks) < 2:
        raise Problem(
            f"{run.path} has {plural(len(comparison.ranks), 'rank')} that recorded something: two are needed",
            "`torchrun --nproc-per-node 2 -m tracing run CASE --rank-aware`",
        )
    if count > limit:
        out.print(f"{plural(count - limit, 'parting')} more: `--limit {count}` shows them")
    for line in summary_text(comparison):
        out.print(line)
    unlike = sum(not choice.agreed for choice in choices(run))
    if unlike:
        told = f"autotuners chose differently: {plural(unlike, 'kernel')}, `tracing winners {run.path}`"
        out.print(told, markup=False)
    if count:
        return 1
    whole = "" if not comparison.notes else " as far as they go"
    out.print(f"the ranks went together{whole}")
    return 2 if comparison.notes else 0


def _next(run: store.Run, event: RankEvent) -> list[str]:
    if event.row is None or event.way is None:
        return []
    process = next(one for one in run.processes() if store.rank_of(one) == event.rank)
    return hints.of_launch(run, run.joiner(process).launch(event.row), event.rank)
