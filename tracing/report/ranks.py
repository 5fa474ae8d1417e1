"""The event at which ranks of one job diverge, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from tracing.analyze.ranks.parameter_writes import UnlikeParameterWrites
from tracing.analyze.ranks.rank_divergence import RankDivergence, groups_of
from tracing.analyze.ranks.ranks import EXPLAINED, RankComparison
from tracing.report.text import DIGITS, Line, plural
from tracing.report.winners import ranks_text

_WHAT = {
    "launch": "the ranks launch different kernels, configurations or shapes",
    "missing": "not every rank reaches this event",
    "added": "not every rank reaches this event",
    "collective": "this collective must give every rank the same bits, and did not",
    "altered": "all ranks received equal bits from a collective; code changed them before this launch",
    "update": "this parameter was equal on all ranks before this update, and differs after it",
    "output": "all ranks read equal bits: the kernel or the device is not deterministic",
    "operator": "these ranks read equal bits: the operator or the device is not deterministic",
}

_UNDECIDED = "which rank diverged cannot be decided"


def divergence_text(divergence: RankDivergence, first: bool) -> Iterator[Line]:
    """One divergence: the ranks that diverged, the event of each, and their previous events."""
    title = "first divergence" if first else "another divergence, perhaps a consequence of those above"
    who = f"{ranks_text(divergence.diverged)} diverged" if divergence.diverged else _UNDECIDED
    yield Text.assemble((f"✗ {title}", "bold red"), f": {who}, at {_position(divergence)}")
    if divergence.event.site is not None:
        yield f"    at        {divergence.event.site}"
    for ranks, has in divergence.groups:
        yield f"    {ranks_text(ranks):<11} {_shortened(has)}"
    if divergence.code is not None:
        yield f"    {divergence.code.stage:<9} differs"
        yield from (Text(f"              {line}") for line in divergence.code.diff)
    if divergence.outputs:
        yield f"    outputs   {', '.join(divergence.outputs)} differ"
    yield from (f"    → {line}" for line in _explained(divergence))
    yield from (f"    {line}" for line in _before(divergence))


def _explained(divergence: RankDivergence) -> Iterator[str]:
    if divergence.code is None:
        yield _WHAT[divergence.kind]
    else:
        although = "" if divergence.code.stage == "source" else ", although its source is equal"
        yield f"the kernel's {divergence.code.stage} differs between ranks{although}"
    for call in divergence.calls:
        where = f", at {call.site}" if call.site is not None else ""
        given = (f"({arguments}) on {ranks_text(ranks)}" for ranks, arguments in groups_of(call.by_rank))
        yield f"the ranks call {call.name} with other arguments: {', '.join(given)}{where}"
    if divergence.writes is not None:
        yield f"its gradient: {_writes_text(divergence.writes)}"
    if divergence.own_writes is not None:
        yield f"the parameter itself: {_writes_text(divergence.own_writes)}"
    if divergence.gradients and not any(one.reduced for one in divergence.gradients.values()):
        yield "no collective reduced its gradient on any rank"
        return
    for rank, one in divergence.gradients.items():
        where = f", at {one.site}" if one.site is not None else ""
        if one.reduced:
            yield f"rank {rank}: the gradient is the result of {one.writer}{where}"
        else:
            yield f"rank {rank}: no collective reduced the gradient; {one.writer} wrote it last{where}"


def _writes_text(writes: UnlikeParameterWrites) -> str:
    # the first call that not every rank makes
    groups = groups_of(writes.by_rank)
    only = "only " if any(not call for _, call in groups) else ""
    parts = []
    for ranks, call in groups:
        where = f", at {site}" if (site := writes.sites[ranks[0]]) is not None else ""
        parts += [f"{only}{ranks_text(ranks)} wrote it by {call}{where}"] if call else []
    return "; ".join(parts)


def _before(divergence: RankDivergence) -> Iterator[str]:
    for rank in divergence.diverged:
        if before := divergence.before.get(rank):
            yield f"rank {rank} before it: {'; '.join(before)}"


def _position(divergence: RankDivergence) -> str:
    more = f" and {divergence.count - 1} after it" if divergence.count > 1 else ""
    return f"{divergence.event}{more}{f', {divergence.argument}' if divergence.argument else ''}"


def _shortened(has: str) -> str:
    # `has` is a digest or a text
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
        yield f"{comparison.repeated} further events repeat a reported divergence"
    for what in _uncovered(comparison):
        yield Text.assemble(("not compared", "yellow"), f": {what}")


def _uncovered(comparison: RankComparison) -> Iterator[str]:
    if comparison.own_launches:
        yield f"results of {plural(comparison.own_launches, 'launch')} that read each rank's own data"
    if comparison.undigested_launches:
        count = plural(comparison.undigested_launches, "launch")
        yield f"results of {count} that have no digests of all that they read and wrote"
    if comparison.unproven:
        results = plural(comparison.unproven, "result")
        yield f"{results} of equal inputs, perhaps unwritten in part: this memory held other bits before"
    if comparison.other_collectives:
        yield f"{plural(comparison.other_collectives, 'collective')} whose results differ by design"
    if comparison.own:
        own = comparison.own
        names = "; ".join(one.name for one in own[:EXPLAINED])
        more = f"; and {len(own) - EXPLAINED} more" if len(own) > EXPLAINED else ""
        yield f"{plural(len(own), 'parameter')} that differed before the first update: {names}{more}"
        yield from (f"{one.name}: {_writes_text(one.writes)}" for one in own if one.writes is not None)
    if comparison.undigested:
        yield f"{plural(comparison.undigested, 'collective')} or updates without digests"
    if not (comparison.proves or comparison.diverged):
        yield "what the ranks computed: no launch read equal data, and no optimizer updated equal parameters"
    yield from comparison.notes


def agreement_text(comparison: RankComparison) -> str:
    """The verdict where no rank diverged, with what it covers."""
    compared = {
        "launch": (comparison.same_inputs, comparison.launches, " on equal data"),
        "operator": (comparison.same_operators, comparison.same_operators, " on equal data"),
        "collective": (comparison.compared_collectives, comparison.collectives, ""),
        "update": (comparison.compared_updates, comparison.updates, ""),
    }
    if comparison.whole:
        parts = [f"{plural(some, noun)}{what}" for noun, (some, _, what) in compared.items() if some]
        return f"the ranks agree: {', '.join(parts)}"
    parts = [f"{some} of {plural(every, noun)}" for noun, (some, every, _) in compared.items() if every]
    return f"nothing differs in what could be compared ({', '.join(parts) or 'nothing'})"


def ranks_json(
    comparison: RankComparison,
    status: int,
    divergences: Sequence[RankDivergence],
    commands: Sequence[str],
    winners: Sequence[str],
) -> dict[str, Any]:
    """A comparison of ranks as data; keys as in docs/json.md.

    commands -- that investigate the first divergence
    winners  -- kernels of which autotuners of the ranks chose different configurations
    """
    return {
        "run": str(comparison.run.path),
        "status": status,
        "ranks": list(comparison.ranks),
        "divergences": [
            _divergence_json(one, commands if position == 0 else ())
            for position, one in enumerate(divergences)
        ],
        "winners_differ": list(winners),
        "launches": comparison.launches,
        "collectives": comparison.collectives,
        "updates": comparison.updates,
        "compared": {
            "launches": comparison.same_inputs,
            "operators": comparison.same_operators,
            "collectives": comparison.compared_collectives,
            "updates": comparison.compared_updates,
        },
        "repeats": comparison.repeated,
        "not_compared": list(_uncovered(comparison)),
    }


def _divergence_json(one: RankDivergence, commands: Sequence[str]) -> dict[str, Any]:
    # the keys of `tracing compare --json`, where both commands know the fact
    launched, called = one.event.row is not None, one.event.operator is not None
    return {
        "kind": one.kind,
        "rank": one.event.rank,
        "launch": one.event.launch,
        "kernel": one.event.name if launched else None,
        "landmark": None if launched or called else one.event.name,
        "operator": f"#{one.event.operator} {one.event.name}" if called else None,
        "argument": one.argument or None,
        "accused": {"ranks": list(one.diverged), "certain": bool(one.diverged)},
        "groups": [{"ranks": list(ranks), "has": has} for ranks, has in one.groups],
        "outputs": list(one.outputs),
        "count": one.count,
        "site": None if one.event.site is None else str(one.event.site),
        "diff": list(one.code.diff) if one.code else [],
        "evidence": [*_explained(one), *_before(one)],
        "next": list(commands),
    }
