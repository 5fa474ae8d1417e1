"""Find the rank of a job that first differs from the others, and the event.

Inputs differ between ranks on purpose, so unequal bits prove nothing. These do:

- launches: another kernel, grid, configuration or layout; an extra or a missing one;
- a collective that must give all ranks of its group the same bits (all-reduce, broadcast, all-gather), but
  did not;
- the result of such a collective that a launch reads later: other bits, or another last writer, on some
  ranks;
- an update of parameters that were equal on all ranks before the first update;
- a launch that read equal bits on all ranks and wrote other bits on some.

A rank diverged if it disagrees with most others. With two ranks, or two halves, this is undecidable.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tracing.analyze.compare.signature_pair import SignaturePair, Slot, signature_pair
from tracing.analyze.ranks.rank_divergence import RankDivergence, RankDivergenceKind, groups_of, joined
from tracing.analyze.ranks.rank_events import RankEvent, RankEvents, RankStep, ranks_of, side_by_side
from tracing.store import Run

MEMORY = 3  # events that are reported before one that differs
_ALIKE = ("allreduce", "broadcast", "allgather", "_allgather", "all_reduce", "all_gather")


@dataclass(slots=True)
class RankComparison:
    """The comparison of a run's ranks: iteration yields divergences; the counters are complete after it."""

    run: Run
    ranks: tuple[int, ...] = ()
    launches: int = 0  # that all ranks made
    collectives: int = 0  # of kinds that give all ranks equal results, and were compared
    other_collectives: int = 0  # that give each rank its own result
    undigested: int = 0  # landmarks whose bits were not taken on every rank
    updates: int = 0
    same_inputs: int = 0  # launches that read the same bits on all ranks
    unproven: int = 0  # of these, with other results in memory that held other bits before
    own: int = 0  # parameters that were not equal before the first update: each rank's own
    repeated: int = 0  # events that repeat a divergence
    notes: list[str] = field(default_factory=list)  # what was not compared, and why
    _equal: dict[object, set[int]] = field(default_factory=dict)  # parameters that are alike on all ranks
    _spoilt: set[str] = field(default_factory=set)  # collectives that gave ranks different bits at least once
    _members: dict[str, set[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(set))
    _pairs: dict[object, SignaturePair] = field(default_factory=dict)

    def __iter__(self) -> Iterator[RankDivergence]:
        processes, self.notes = ranks_of(self.run)
        self.ranks = tuple(one.rank for one in processes)
        done: dict[int, deque[str]] = {rank: deque(maxlen=MEMORY) for rank in self.ranks}
        known = Counter[tuple[object, ...]]()
        if len(processes) < 2:
            return
        for divergence in joined(self._divergences(processes, done)):
            known[divergence.key] += 1
            if known[divergence.key] == 1:
                yield divergence
        self.repeated = sum(known.values()) - len(known)

    def _divergences(
        self, ranks: list[RankEvents], done: Mapping[int, deque[str]]
    ) -> Iterator[RankDivergence]:
        for step, absent in side_by_side(ranks):
            first = next(iter(step.values()))
            for divergence in self._at(step, absent):
                before = {rank: tuple(done[rank]) for rank in divergence.diverged}
                yield RankDivergence(
                    divergence.kind, first, divergence.groups, divergence.argument, before, divergence.outputs
                )
            for rank, event in step.items():
                done[rank].append(str(event))

    def _at(self, step: RankStep, absent: Mapping[int, str]) -> Iterator[RankDivergence]:
        first = next(iter(step.values()))
        if absent:
            # an event that most ranks lack was added on the others
            kind: RankDivergenceKind = "missing" if len(step) >= len(absent) else "added"
            by_rank = {rank: event.name for rank, event in step.items()}
            by_rank |= {rank: name or "its end" for rank, name in absent.items()}
            yield RankDivergence(kind, first, groups_of(by_rank))
            if len(step) == 1:
                return
        if len({event.name for event in step.values()}) > 1:
            yield RankDivergence(
                "launch", first, groups_of({rank: event.name for rank, event in step.items()})
            )
        elif first.row is not None:
            self.launches += 1
            yield from self._launches(step)
        elif first.landmark is not None and first.landmark.kind == "collective":
            yield from self._collective(step)
        else:
            yield from self._update(step)

    # ---- launches

    def _launches(self, step: RankStep) -> Iterator[RankDivergence]:
        first = next(iter(step.values()))
        lowest = next(iter(step))
        pairs = {rank: self._signature_pair((lowest, first), (rank, event)) for rank, event in step.items()}
        texts = {rank: _changed(pair, "b") for rank, pair in pairs.items()}
        slots = min((pair.slots for pair in pairs.values()), key=len)  # fewer where a rank has no digests
        inputs = [slot for slot in slots if slot.side == "before"]
        unequal = [slot for slot in inputs if len(set(_bits(slot, step, pairs).values())) > 1]
        outputs = [] if unequal else _outputs(first, step, pairs)
        if len(set(texts.values())) > 1:
            theirs = next(_changed(pair, "a") for pair in pairs.values() if pair.changes)
            by_rank = {rank: text or theirs for rank, text in texts.items()}
            yield RankDivergence(
                "launch", first, groups_of(by_rank), outputs=tuple(slot_name(first, s) for s in outputs)
            )
            return
        yield from self._altered(step, pairs, unequal)
        if not unequal and slots:
            self.same_inputs += 1
            for slot in outputs:
                if _held_other_bits(slot, step, pairs):
                    self.unproven += 1
                else:
                    groups = groups_of(_bits(slot, step, pairs))
                    yield RankDivergence("output", first, groups, slot_name(first, slot))

    def _signature_pair(self, one: tuple[int, RankEvent], other: tuple[int, RankEvent]) -> SignaturePair:
        (rank_a, a), (rank_b, b) = one, other
        assert a.row and b.row and a.launched and b.launched
        patterns = (a.row.before, a.row.after, b.row.before, b.row.after)
        key = (rank_a, a.row.line.signature, rank_b, b.row.line.signature, *patterns)
        pair = self._pairs.get(key)
        if pair is None:
            pair = self._pairs[key] = signature_pair(a.row, b.row, a.launched, b.launched)
        return pair

    def _altered(
        self, step: RankStep, pairs: Mapping[int, SignaturePair], unequal: Sequence[Slot]
    ) -> Iterator[RankDivergence]:
        # a result that a collective left equal on all ranks, and that nothing should have written since
        first = next(iter(step.values()))
        for slot in unequal:
            writers = {
                rank: event.row.line.writers.get(slot.position, "")
                for rank, event in step.items()
                if event.row
            }
            name = Counter(writers.values()).most_common(1)[0][0]
            if not self._keeps_alike(name):
                continue
            if len(set(writers.values())) > 1:
                by_rank = {
                    rank: f"last written by {one or 'a launch, or nobody'}" for rank, one in writers.items()
                }
            elif _offsets(slot, step) > 1 or name in self._spoilt:
                continue  # each rank reads its own part; or the difference follows from an earlier one
            else:
                by_rank = _bits(slot, step, pairs)
            yield RankDivergence(
                "altered", first, groups_of(by_rank), f"{slot_name(first, slot)}, which {name} left"
            )

    def _keeps_alike(self, name: str) -> bool:
        return leaves_alike(name) and self._members[name] == {self.ranks}

    # ---- landmarks

    def _collective(self, step: RankStep) -> Iterator[RankDivergence]:
        first = next(iter(step.values()))
        if not leaves_alike(first.name):
            self.other_collectives += 1
            return
        self.collectives += 1
        by_members: dict[tuple[int, ...], dict[int, RankEvent]] = defaultdict(dict)
        for rank, event in step.items():
            assert event.landmark is not None
            by_members[event.landmark.ranks][rank] = event
        for members, events in by_members.items():
            self._members[first.name].add(members)
            if any(event.results is None for event in events.values()):
                self.undigested += 1
                continue
            for number, by_rank in _unequal(events):
                self._spoilt.add(first.name)
                yield RankDivergence("collective", first, groups_of(by_rank), f"result {number}")

    def _update(self, step: RankStep) -> Iterator[RankDivergence]:
        first = next(iter(step.values()))
        assert first.landmark is not None
        self.updates += 1
        name = first.name.removeprefix("before ")
        key = (name, first.landmark.results)
        if any(event.results is None for event in step.values()):
            self.undigested += 1
            return
        unequal = dict(_unequal(step))
        if name != first.name:
            self.updates -= 1
            equal = set(range(len(first.results or ()))) - unequal.keys()
            self._equal[key] = self._equal.get(key, equal) & equal
            self.own += len(unequal)
            return
        for number in sorted(unequal.keys() & self._equal.get(key, set())):
            self._equal[key].discard(number)
            yield RankDivergence("update", first, groups_of(unequal[number]), f"parameter {number}")


def _changed(pair: SignaturePair, side: Literal["a", "b"]) -> str:
    return ", ".join(f"{one.name}={getattr(one, side)}" for one in pair.changes)


def leaves_alike(name: str) -> bool:
    """True if a collective leaves equal bits on all ranks of its group."""
    library, _, operator = name.partition("::")
    return library in ("c10d", "_c10d_functional") and operator.startswith(_ALIKE)


def slot_name(event: RankEvent, slot: Slot) -> str:
    """The name of a slot's argument."""
    assert event.launched is not None
    return event.launched[1].args[slot.position].name


def _unequal(step: RankStep) -> Iterator[tuple[int, dict[int, str]]]:
    # the results of a landmark that differ between ranks: which, and the bits of each
    for number in range(min(len(event.results or ()) for event in step.values())):
        by_rank = {rank: (event.results or ())[number] for rank, event in step.items()}
        if len(set(by_rank.values())) > 1:
            yield number, by_rank


def _bits(slot: Slot, step: RankStep, pairs: Mapping[int, SignaturePair]) -> dict[int, str]:
    # of one digest on every rank; its position may differ between them
    by_rank = {}
    for rank, event in step.items():
        same = next(
            (s for s in pairs[rank].slots if (s.side, s.position) == (slot.side, slot.position)), None
        )
        by_rank[rank] = event.row.bits(same.b, same.b + 1) if same and event.row else ""
    return by_rank


def _outputs(first: RankEvent, step: RankStep, pairs: Mapping[int, SignaturePair]) -> list[Slot]:
    # outputs of the launch that differ on some rank
    slots: dict[int, Slot] = {}
    for rank, event in step.items():
        assert first.row and event.row
        for slot in pairs[rank].differing(first.row, event.row):
            if slot.side == "after" and slot.differs_by_writing(first.row, event.row):
                slots.setdefault(slot.position, slot)
    return list(slots.values())


def _held_other_bits(slot: Slot, step: RankStep, pairs: Mapping[int, SignaturePair]) -> bool:
    first = next(iter(step.values())).row
    return any(
        one.held_other_bits(first, event.row)
        for rank, event in step.items()
        for one in pairs[rank].slots
        if first and event.row and (one.side, one.position) == ("after", slot.position)
    )


def _offsets(slot: Slot, step: RankStep) -> int:
    metas = [event.launched[1].args[slot.position].tensor for event in step.values() if event.launched]
    return len({meta.offset for meta in metas if meta})
