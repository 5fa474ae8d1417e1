"""The event at which ranks of one job part, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from tracing.analyze.ranks.rank_parting import RankParting
from tracing.analyze.ranks.ranks import RankComparison
from tracing.report.text import DIGITS, Line, plural
from tracing.report.winners import ranks_text

_WHAT = {
    "launch": "the launch itself differs: another kernel, another configuration, or data of another shape",
    "lacking": "not every rank comes here",
    "more": "not every rank comes here",
    "collective": "this collective leaves every rank with the same bits, but did not",
    "altered": "what a collective left alike on all ranks was changed before it is read here",
    "update": "this parameter was the same on all ranks before the update",
    "output": "all ranks read the same bits: the kernel, or the device, gave two results",
}


def parting_text(parting: RankParting, first: bool) -> Iterator[Line]:
    """A parting: the ranks that left, the event of each, and their previous events."""
    title = "first parting" if first else "another parting, which may follow from those above"
    who = f"{ranks_text(parting.left)} left" if parting.left else "who left is not known"
    yield Text.assemble((f"✗ {title}", "bold red"), f": {who}, at {_position(parting)}")
    for ranks, has in parting.groups:
        yield f"    {ranks_text(ranks):<11} {_shortened(has)}"
    if parting.outputs:
        yield f"    and it left other results: {', '.join(parting.outputs)}"
    yield f"    → {_WHAT[parting.kind]}"
    for rank in parting.left:
        if before := parting.before.get(rank):
            yield f"    rank {rank} before that: {'; '.join(before)}"


def _position(parting: RankParting) -> str:
    more = f" and {parting.count - 1} after it" if parting.count > 1 else ""
    return f"{parting.event}{more}{f', {parting.argument}' if parting.argument else ''}"


def _shortened(has: str) -> str:
    # a digest, or words
    return has[:DIGITS] if len(has) == 32 and " " not in has else has


def summary_text(comparison: RankComparison) -> Iterator[Line]:
    """The ranks and events that were compared, and those that were not."""
    counts = (
        plural(comparison.launches, "launch"),
        plural(comparison.collectives, "collective"),
        plural(comparison.updates, "update"),
    )
    yield f"{ranks_text(comparison.ranks)}: {', '.join(counts)} in common"
    if comparison.repeated:
        yield f"{comparison.repeated} more repeat what is reported"
    for what in _uncovered(comparison):
        yield Text.assemble(("not compared", "yellow"), f": {what}")


def _uncovered(comparison: RankComparison) -> Iterator[str]:
    own = comparison.launches - comparison.same_inputs
    if own:
        yield f"results of {plural(own, 'launch')} that read each rank's own data, or have no digests"
    if comparison.unproven:
        results = plural(comparison.unproven, "result")
        yield f"{results} of equal inputs that may be unwritten in part: the memory held other bits before"
    if comparison.other_collectives:
        yield f"{plural(comparison.other_collectives, 'collective')} that leave each rank with its own"
    if comparison.own:
        yield f"{plural(comparison.own, 'parameter')} that differed before the first update: each rank's own"
    if comparison.undigested:
        yield f"{plural(comparison.undigested, 'collective')} or updates without digests"
    yield from comparison.notes


def ranks_json(
    comparison: RankComparison,
    status: int,
    partings: Sequence[RankParting],
    commands: Sequence[str],
    winners: Sequence[str],
) -> dict[str, Any]:
    """A comparison of ranks as data; keys as in docs/json.md.

    winners -- kernels of which autotuners of the ranks chose different configurations
    """
    return {
        "run": str(comparison.run.path),
        "status": status,
        "ranks": list(comparison.ranks),
        "partings": [_parting_json(one) for one in partings],
        "next": list(commands),
        "winners_differ": list(winners),
        "launches": comparison.launches,
        "collectives": comparison.collectives,
        "updates": comparison.updates,
        "repeats": comparison.repeated,
        "not_compared": list(_uncovered(comparison)),
    }


def _parting_json(one: RankParting) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "name": one.event.name,
        "launch": one.event.launch,
        "argument": one.argument or None,
        "left": list(one.left),
        "groups": [{"ranks": list(ranks), "has": has} for ranks, has in one.groups],
        "before": {str(rank): list(events) for rank, events in one.before.items()},
        "outputs": list(one.outputs),
        "count": one.count,
    }
