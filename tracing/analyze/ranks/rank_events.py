"""Align launches and landmarks of a job's ranks, event by event.

Ranks of one program launch the same kernels in the same order. While they do, no event is held back. After a
difference, the majority is followed: additional events of a minority are yielded by themselves, missing ones
are marked as missing, and `fewest_skips` finds the position from which the ranks agree.

Cost: about 1 µs per launch and rank while the ranks agree. Memory: WINDOW events of each rank while they do
not, and the digests of all landmarks.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from tracing.analyze.align.alignment import WINDOW, fewest_skips
from tracing.analyze.runs.outcomes import ending
from tracing.analyze.runs.recorded_steps import RecordedSteps, not_covered_steps
from tracing.digest.columns import Row
from tracing.model import Access, CallSite, Kernel, Landmark, LandmarkDigests, LaunchLine, Signature
from tracing.store import Run, rank_of
from tracing.store.joins import in_step

_OPEN = 1 << 62  # beyond every step and launch


@dataclass(frozen=True, slots=True)
class RankEvent:
    """One launch, one landmark or one call of an operator, of one rank."""

    name: str  # of the kernel, the collective, the update
    launch: int  # its index; else how many launches came before
    ordinal: int  # of a landmark among those of its name, from 0
    row: Row | None = None
    launched: tuple[Kernel, Signature] | None = None  # with which a row was launched
    landmark: Landmark | None = None
    inputs: tuple[str, ...] | None = None  # bits at a landmark; None: not taken
    results: tuple[str, ...] | None = None
    rank: int = 0
    site: CallSite | None = None  # of a launch
    access: Access | None = None  # of a launch; None: only digests are known
    operator: int | None = None  # number of the call of an operator

    def __str__(self) -> str:
        if self.row is not None:
            return f"launch #{self.launch} {self.name}"
        before = f"launch #{self.launch}" if self.launch else "any launch"
        if self.operator is not None:
            return f"operator #{self.operator} {self.name}, before {before}"
        return f"{self.name} #{self.ordinal}, before {before}"


RankStep: TypeAlias = Mapping[int, RankEvent]  # by rank: the same event on all of these ranks


class RankEvents:
    """The launches and landmarks of one process of a run."""

    def __init__(self, run: Run, process: str, start: int = 0, stop: int = _OPEN) -> None:
        """start, stop -- only the events between these numbers of launches"""
        self.rank = rank_of(process)
        self._run, self._process, self._start, self._stop = run, process, start, stop

    def __iter__(self) -> Iterator[RankEvent]:
        for event in self._events():
            # a landmark at the very start may belong to the step before, which other ranks lack
            at_start = event.row is None and event.launch == self._start and self._start > 0
            if self._start <= event.launch < self._stop and not at_start:
                yield event

    def _events(self) -> Iterator[RankEvent]:
        known, sites = self._run.signatures(self._process), self._run.sites(self._process)
        access_of = in_step(self._run.view(self._process, Access, Access), lambda one: one.launch)
        marks = landmarks(self._run, self._process)
        waiting = next(marks, None)
        for row in self._run.rows(self._process):
            index = row.line.index
            while waiting is not None and waiting.launch <= index:
                yield waiting
                waiting = next(marks, None)
            if launched := known.get(row.line.signature):
                yield RankEvent(
                    launched[0].name,
                    index,
                    0,
                    row,
                    launched,
                    rank=self.rank,
                    site=sites.get(row.line.site),
                    access=access_of(index),
                )
        while waiting is not None:
            yield waiting
            waiting = next(marks, None)


def landmarks(run: Run, process: str) -> Iterator[RankEvent]:
    """The landmarks of one process of a run with their digests; holds all digests in memory."""
    bits: dict[tuple[int, str], tuple[str, ...]] = {}
    for line in run.view(process, LandmarkDigests, LandmarkDigests):
        key = (line.landmark, line.side)  # several records if the program waits for results one by one
        bits[key] = (*bits.get(key, ()), *(digest.bits for digest in line.digests))
    counts = Counter[str]()
    for one in run.view(process, Landmark, Landmark):
        sides = bits.get((one.index, "inputs")), bits.get((one.index, "results"))
        yield RankEvent(one.name, one.launch, counts[one.name], None, None, one, *sides, rank_of(process))
        counts[one.name] += 1


def ranks_of(run: Run) -> tuple[list[RankEvents], list[str]]:
    """The ranks of a run, one process each, and notes on ranks that are missing or did not end."""
    by_rank: dict[int, list[str]] = {}
    for process in sorted({*run.processes(LaunchLine), *run.processes(Landmark)}):
        by_rank.setdefault(rank_of(process), []).append(process)
    size = run.info.world_size
    notes = [f"rank {rank} of {size} recorded nothing" for rank in range(size) if rank not in by_rank]
    for rank, (_, *others) in sorted(by_rank.items()):
        notes += [f"{other.strip('-')}, another process of rank {rank}" for other in others]
        if early := ending(run, rank):
            notes.append(f"rank {rank} {early}; later launches are not compared")
    first = [processes[0] for _, processes in sorted(by_rank.items())]
    notes += [one.what for one in not_covered_steps(run)]
    bounds = _common_steps([RecordedSteps.of(run, process) for process in first])
    return [RankEvents(run, process, *both) for process, both in zip(first, bounds, strict=True)], notes


def _common_steps(ranks: list[RecordedSteps]) -> list[tuple[int, int]]:
    # the numbers of launches between which every rank has all steps that it was to record
    start = max((one.start for one in ranks), default=0)
    stop = min((one.stop.step + 1 for one in ranks if one.stop is not None), default=_OPEN)
    return [(one.launches_at(start), one.launches_at(stop)) for one in ranks]


def side_by_side(ranks: list[RankEvents]) -> Iterator[tuple[RankStep, Mapping[int, str]]]:
    """Aligns the events of several ranks: the ranks that have each event, and the next events of the others.

    The text of a rank that lacks the event is its next event; it is empty at the end of the rank.
    """
    ahead = {one.rank: _Ahead(iter(one)) for one in ranks}
    while True:
        heads = {rank: one.name() for rank, one in ahead.items()}
        names = Counter(name for name in heads.values() if name is not None)
        if not names:
            return
        if len(names) == 1 and None not in heads.values() and not any(one.lacks for one in ahead.values()):
            yield {rank: one.take() for rank, one in ahead.items()}, {}
        else:
            yield from _out_of_step(ahead)


class _Ahead:
    # the events of one rank, with look-ahead

    def __init__(self, events: Iterator[RankEvent]) -> None:
        self._events = events
        self.held = deque[RankEvent]()
        self.lacks = 0  # the number of following events of most ranks that this rank lacks
        self.instead = 0  # the number of these that it replaces by other events

    def name(self) -> str | None:
        self._fill(1)
        return self.held[0].name if self.held else None

    def names(self) -> list[str]:
        self._fill(WINDOW)
        return [event.name for event in islice(self.held, WINDOW)]

    def take(self) -> RankEvent:
        self._fill(1)
        return self.held.popleft()

    def _fill(self, count: int) -> None:
        if len(self.held) < count:
            self.held.extend(islice(self._events, count - len(self.held)))


def _out_of_step(ahead: dict[int, _Ahead]) -> Iterator[tuple[RankStep, Mapping[int, str]]]:
    # one event of most ranks, after all additional events of the others
    here = {rank: one for rank, one in ahead.items() if not one.lacks and one.name() is not None}
    if not here:  # only ranks that lacked the other events continue
        for one in ahead.values():
            one.lacks = 0
        return
    name, _ = Counter(one.name() for one in here.values()).most_common(1)[0]
    leading = next(one for one in here.values() if one.name() == name)
    for rank, one in here.items():
        if one.name() == name or one.instead:
            continue
        lacking, more = fewest_skips(leading.names(), one.names())
        if lacking == more:
            one.instead = lacking
            continue
        one.lacks = lacking
        for _ in range(more):
            event = one.take()
            yield {rank: event}, {other: ahead[other].name() or "" for other in ahead if other != rank}
    step = {rank: one.take() for rank, one in here.items() if not one.lacks and one.held}
    absent = {rank: one.name() or "" for rank, one in ahead.items() if rank not in step}
    for one in ahead.values():
        one.lacks, one.instead = max(0, one.lacks - 1), max(0, one.instead - 1)
    if step:
        yield step, absent
