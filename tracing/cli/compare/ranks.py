"""`tracing ranks`: which rank of a distributed job diverged first, and at which launch or collective."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tracing import store
from tracing.analyze.ranks.ranks import RankComparison
from tracing.analyze.runs.winners import choices
from tracing.cli.answers import divergence_hints
from tracing.cli.answers.recording_hints import all_ranks
from tracing.cli.app import COMPARE, RUNS, Json, Runs, app, out
from tracing.cli.options.named import RunArgument
from tracing.cli.options.opened import open_run
from tracing.errors import Problem
from tracing.report.ranks import agreement_text, divergence_text, ranks_json, summary_text
from tracing.report.text import plural


@app.command(rich_help_panel=COMPARE)
def ranks(
    name: RunArgument,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many divergences.")] = 10,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Find the rank of a distributed job that diverged first from the others.

    Names the launch, collective or optimizer step at which it diverged, and the autotuners that chose
    different configurations.

    Example: torchrun --nproc-per-node 2 -m tracing run --rank-aware silu && tracing ranks latest

    Each rank's own data may differ. Equal on all ranks are the results of launches on equal data, parameters
    that an optimizer updates, and what an all-reduce leaves.

    Exit status: 0 if the ranks agree, 1 if one diverged, 2 if not all could be compared that should be equal.
    """
    run = open_run(name, runs)
    raise typer.Exit(_print_json(run) if as_json else _ranks_compared(run, limit))


def _ranks_compared(run: store.Run, limit: int) -> int:
    comparison = RankComparison(run)
    count = 0
    for count, divergence in enumerate(comparison, 1):
        if count <= limit:
            for line in divergence_text(divergence, first=count == 1):
                out.print(line)
            for command in divergence_hints.of_rank_divergence(run, divergence) if count == 1 else ():
                out.print(f"    next      {command}")
    _require_two(comparison)
    if count > limit:
        out.print(f"{plural(count - limit, 'divergence')} more: `--limit {count}` shows them")
    for line in summary_text(comparison):
        out.print(line)
    unlike = sum(not choice.agreed for choice in choices(run))
    if unlike:
        line = f"autotuners chose differently: {plural(unlike, 'kernel')}, `tracing winners {run.path}`"
        out.print(line)
    if count:
        return 1
    out.print(agreement_text(comparison))
    for command in divergence_hints.of_rank_update(run) if comparison.own else ():
        out.print(f"    next      {command}")
    return 0 if comparison.whole else 2


def _require_two(comparison: RankComparison) -> None:
    if len(comparison.ranks) < 2:
        ranks = plural(len(comparison.ranks), "rank")
        raise Problem(
            f"{comparison.run.path} has {ranks} that recorded launches or landmarks; at least two are needed",
            f"record the ranks of a job into one run: `{all_ranks(comparison.run)}`",
        )


def _print_json(run: store.Run) -> int:
    comparison = RankComparison(run)
    divergences = list(comparison)
    _require_two(comparison)
    status = 1 if divergences else 0 if comparison.whole else 2
    commands = divergence_hints.of_rank_divergence(run, divergences[0]) if divergences else []
    unlike = [choice.first.kernel for choice in choices(run) if not choice.agreed]
    print(json.dumps(ranks_json(comparison, status, divergences, commands, unlike), indent=2))
    return status
