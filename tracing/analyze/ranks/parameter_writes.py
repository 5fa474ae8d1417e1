"""Find the operators by which ranks wrote one parameter otherwise, and what wrote its gradient.

A parameter is known by its storage, which its landmark names. There is no answer for runs without it, or
without records of operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from typing import NamedTuple

from tracing.analyze.ranks.alike_collectives import leaves_alike
from tracing.analyze.ranks.rank_events import RankEvent, RankStep
from tracing.model import CallSite, Landmark, LaunchLine, Operator
from tracing.store import Run, rank_of

_COPIES = ("aten::copy_", "aten::_foreach_copy_", "aten::clone", "aten::_to_copy")
_EXTRA = 3  # most calls in a row that only some ranks make
_DEVICE = re.compile(r"(?:, )?\bdevice=device\([^)]*\)")  # each rank has its own


@dataclass(frozen=True, slots=True)
class UnlikeParameterWrites:
    """The first call that wrote a parameter and that not every rank made, or made with other arguments.

    Calls before a collective that left the parameter equal on all ranks are ignored.
    """

    by_rank: Mapping[int, str]  # the call on each rank; "": it wrote the parameter no more
    sites: Mapping[int, CallSite | None]


@dataclass(frozen=True, slots=True)
class OwnParameter:
    """A parameter that was not equal on all ranks before the first update."""

    name: str  # "parameter 3, 2.bias"
    writes: UnlikeParameterWrites | None


@dataclass(frozen=True, slots=True)
class Gradient:
    """What wrote the gradient of a parameter since the previous update."""

    reduced: bool  # a collective left it equal on all ranks
    writer: str  # that collective, or else the last operator or launch
    site: CallSite | None


def unlike_writes(
    run: Run, step: RankStep, number: int, *, gradient: bool = False
) -> UnlikeParameterWrites | None:
    """None if every rank made the same calls on a parameter before a landmark, or if they are not known.

    number   -- of the parameter, among those of the landmark
    gradient -- the calls on its gradient instead
    """
    made: dict[int, list[Operator]] = {}
    for rank, event in step.items():
        storage, calls = _storage(event, number, gradient), _calls(run, event)
        if storage is None or not calls:
            return None
        made[rank] = _writes(calls, storage)
    for at, together in enumerate(zip_longest(*made.values())):
        by_rank = dict(zip(made, map(_text, together), strict=True))
        if len(set(by_rank.values())) > 1:
            sites = (one.site if one is not None else None for one in together)
            following = {rank: [_text(one) for one in calls[at + 1 :]] for rank, calls in made.items()}
            return UnlikeParameterWrites(_extra(by_rank, following), dict(zip(made, sites, strict=True)))
    return None


def _extra(by_rank: Mapping[int, str], following: Mapping[int, Sequence[str]]) -> Mapping[int, str]:
    # calls that some ranks make in addition, before the one of the others: then without that of the others
    extra = {
        rank
        for rank, calls in following.items()
        if any(other != by_rank[rank] and other in calls[:_EXTRA] for other in by_rank.values())
    }
    return {rank: call if rank in extra else "" for rank, call in by_rank.items()} if extra else by_rank


def unlike_gradients(run: Run, step: RankStep, number: int) -> Mapping[int, Gradient]:
    """By rank what wrote the gradient of a parameter; empty if it was reduced on all ranks or is unknown."""
    gradients = {rank: _gradient(run, event, number) for rank, event in step.items()}
    known = {rank: one for rank, one in gradients.items() if one is not None}
    return known if len(known) == len(gradients) and not all(one.reduced for one in known.values()) else {}


def _gradient(run: Run, event: RankEvent, number: int) -> Gradient | None:
    assert event.landmark is not None
    storage, earlier = _storage(event, number, gradient=True), _previous(run, event)
    if storage is None:
        return None
    new = (one for one in _written(_calls(run, event)) if one.call.index >= earlier.operators)
    written = [one for one in new if storage in one.storages]
    # an operator in place, as a division by the number of ranks, changes nothing about its origin
    whole = [
        one for one in written if one.collective or storage not in {read.storage for read in one.call.reads}
    ]
    last = whole[-1] if whole else None
    first = last.call.launch if last is not None else earlier.launch
    launched = _launch_of(run, event, storage, range(first, event.launch))
    if launched is not None or last is None:
        return launched
    named = last.collective or last.call
    return Gradient(last.collective is not None, named.name, named.site)


def _launch_of(run: Run, event: RankEvent, storage: int, launches: range) -> Gradient | None:
    process = _process(run, event.rank)
    known, sites = run.signatures(process), run.sites(process)
    writer = None
    for line in run.view(process, LaunchLine, LaunchLine):
        if line.index in launches and line.signature in known:
            kernel, signature = known[line.signature]
            tensors = (arg for arg in signature.args if arg.tensor is not None)
            pairs = zip(tensors, line.storages, strict=False)
            if any(arg.writes and one == storage for arg, one in pairs):
                writer = Gradient(False, f"launch #{line.index} {kernel.name}", sites.get(line.site))
    return writer


class _Written(NamedTuple):
    call: Operator
    storages: set[int]
    collective: Operator | None  # whose result it left there


def _written(calls: Sequence[Operator]) -> Iterator[_Written]:
    alike: dict[int, Operator] = {}  # by storage: the collective whose result it holds
    for call in calls:
        written = {one.storage for one in call.writes}
        origins = [alike.get(one.storage) for one in call.reads]
        copied = call.name.partition(".")[0] in _COPIES and origins and None not in origins
        collective = call if leaves_alike(call.name) else origins[0] if copied else None
        for storage in written:
            if collective is not None:
                alike[storage] = collective
            else:
                alike.pop(storage, None)
        yield _Written(call, written, collective)


def _writes(calls: Sequence[Operator], storage: int) -> list[Operator]:
    # since a collective, or a copy of its result
    since: list[Operator] = []
    for one in _written(calls):
        if storage in one.storages and not one.call.allocates:
            since = [] if one.collective is not None else [*since, one.call]
    return since


def _previous(run: Run, event: RankEvent) -> Landmark:
    # the previous update
    assert event.landmark is not None
    updates = [
        one
        for one in run.view(_process(run, event.rank), Landmark, Landmark)
        if one.kind == "update" and one.index < event.landmark.index
    ]
    started = [one for one in updates if one.name == event.name]
    return started[-1] if started else Landmark(0, 0, "update", event.name)


def _calls(run: Run, event: RankEvent) -> list[Operator]:
    # those before a landmark
    assert event.landmark is not None
    stop = event.landmark.operators
    return list(takewhile(lambda one: one.index < stop, run.operators(_process(run, event.rank))))


def _process(run: Run, rank: int) -> str:
    return next(one for one in run.processes(Landmark) if rank_of(one) == rank)


def _storage(event: RankEvent, number: int, gradient: bool) -> int | None:
    assert event.landmark is not None
    storages = event.landmark.gradients if gradient else event.landmark.storages
    return storages[number] if number < len(storages) and storages[number] >= 0 else None


def _text(operator: Operator | None) -> str:
    return "" if operator is None else f"{operator.name}({_DEVICE.sub('', operator.arguments)})"
