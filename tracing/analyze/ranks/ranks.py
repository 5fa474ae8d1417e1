"""Find the rank of a job that first differs from the others, and the event.

Inputs differ between ranks on purpose, so unequal bits prove nothing. These do:

- launches: another kernel, code, grid, configuration or layout; an extra or a missing one;
- a collective that must give all ranks of its group the same bits (all-reduce, broadcast, all-gather), but
  did not;
- the result of such a collective that a launch reads later: other bits, or another last writer, on some
  ranks;
- an update of parameters that were equal on all ranks before the first update;
- a launch that read equal bits on all ranks and wrote other bits on some, and an operator that did so on
  several ranks, if the run has digests of operators.

A rank diverged if it disagrees with most others. With two ranks, or two halves, this is undecidable.

The ranks agree only if a launch on equal data or an update of equal parameters was compared, and nothing that
should be equal was left out. An equal all-reduce shows only that the network works.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tracing.analyze.compare.signature_pair import Slot
from tracing.analyze.ranks.alike_collectives import leaves_alike
from tracing.analyze.ranks.lost_equality import LostEquality
from tracing.analyze.ranks.operator_arguments import unlike_arguments
from tracing.analyze.ranks.parameter_writes import OwnParameter, unlike_gradients, unlike_writes
from tracing.analyze.ranks.rank_divergence import RankDivergence, RankDivergenceKind, groups_of, joined
from tracing.analyze.ranks.rank_events import RankEvent, RankEvents, RankStep, ranks_of, side_by_side
from tracing.analyze.ranks.rank_launches import RankLaunch, RankLaunches, is_other_program
from tracing.analyze.ranks.unequal_calls import unequal_calls
from tracing.analyze.ranks.unlike_operators import UnlikeOperators
from tracing.store import Run

EXPLAINED = 3  # parameters that differed before the first update, whose operators are compared
MEMORY = 3  # events that are reported before one that differs


@dataclass(slots=True)
class RankComparison:
    """The comparison of a run's ranks: iteration yields divergences; the counters are complete after it."""

    run: Run
    ranks: tuple[int, ...] = ()
    launches: int = 0  # that all ranks made
    collectives: int = 0  # of kinds that give all ranks equal results
    other_collectives: int = 0  # that give each rank its own result
    undigested: int = 0  # landmarks whose bits were not taken on every rank
    undigested_collectives: int = 0  # of these
    updates: int = 0
    compared_updates: int = 0  # of parameters that were equal on all ranks before
    same_inputs: int = 0  # launches that read the same bits on all ranks, and were compared
    same_operators: int = 0  # calls of operators that read the same bits on several ranks, and were compared
    own_launches: int = 0  # that read each rank's own data
    undigested_launches: int = 0  # that may have read or written what was not digested
    unproven: int = 0  # of these, with other results in memory that held other bits before
    own: list[OwnParameter] = field(default_factory=list)  # not equal before the first update
    diverged: int = 0  # events at which ranks diverge
    repeated: int = 0  # of these, those that repeat a divergence
    notes: list[str] = field(default_factory=list)  # what was not compared, and why
    _equal: dict[object, set[int]] = field(default_factory=dict)  # parameters that are alike on all ranks
    _spoilt: set[str] = field(default_factory=set)  # collectives that gave ranks different bits at least once
    _names: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of parameters, by update
    _proven: int = 0  # of the launches on equal data, those that read a tensor
    _drift: LostEquality = field(default_factory=LostEquality)
    _members: dict[str, set[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(set))

    @property
    def proves(self) -> bool:
        """True if results were compared that depend on what each rank computed."""
        return bool(self._proven or self.compared_updates)

    @property
    def compared_collectives(self) -> int:
        """Collectives whose results were compared."""
        return self.collectives - self.undigested_collectives

    @property
    def whole(self) -> bool:
        """True if all was compared that should be equal on the ranks."""
        left_out = self.unproven or self.undigested or self.undigested_launches or self.own or self.notes
        return self.proves and not left_out

    def __iter__(self) -> Iterator[RankDivergence]:
        processes, self.notes = ranks_of(self.run)
        self.ranks = tuple(one.rank for one in processes)
        done: dict[int, deque[str]] = {rank: deque(maxlen=MEMORY) for rank in self.ranks}
        known = Counter[tuple[object, ...]]()
        if len(processes) < 2:
            return
        launches = RankLaunches(self.run)
        for divergence in joined(self._divergences(processes, done, launches)):
            known[divergence.key] += 1
            self.diverged += 1
            if known[divergence.key] == 1:
                yield divergence
        self.repeated = self.diverged - len(known)
        if not self.notes:  # else a rank may lack calls of its program
            self.notes += unequal_calls(self.run, self.ranks)
        self.notes += launches.notes
        if not self.diverged:
            self.notes += self._drift.notes()

    def _divergences(
        self, ranks: list[RankEvents], done: Mapping[int, deque[str]], launches: RankLaunches
    ) -> Iterator[RankDivergence]:
        operators = UnlikeOperators(self.run, self.ranks)
        unlike = deque(operators.divergences())
        self.same_operators = operators.compared
        for step, absent in side_by_side(ranks):
            reached = max(event.launch for event in step.values())
            while unlike and unlike[0].event.launch <= reached:
                yield unlike.popleft()
            for divergence in self._at(step, absent, launches):
                before = {rank: tuple(done[rank]) for rank in divergence.diverged}
                yield replace(divergence, before=before)
            for rank, event in step.items():
                done[rank].append(str(event))
        yield from unlike

    def _at(
        self, step: RankStep, absent: Mapping[int, str], launches: RankLaunches
    ) -> Iterator[RankDivergence]:
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
            yield from self._launch(launches.of(step))
        elif first.landmark is not None and first.landmark.kind == "collective":
            yield from self._collective(step)
        else:
            yield from self._update(step)

    # ---- launches

    def _launch(self, launch: RankLaunch) -> Iterator[RankDivergence]:
        unequal = launch.unequal()
        outputs = [] if unequal else launch.outputs()
        names = tuple(map(launch.name, outputs))
        if launch.settings:
            yield RankDivergence("launch", launch.first, groups_of(launch.settings), outputs=names)
            return
        if launch.code and (outputs or is_other_program(launch.code)):
            groups = groups_of(launch.kernels)
            yield RankDivergence("launch", launch.first, groups, outputs=names, code=launch.code)
            return
        self._drift.see(launch, unequal)
        yield from self._altered(launch, unequal)
        if unequal:
            self.own_launches += 1
        elif not launch.digested:
            self.undigested_launches += 1
        else:
            self.same_inputs += 1
            self._proven += launch.reads
            yield from self._outputs(launch, outputs)

    def _outputs(self, launch: RankLaunch, outputs: Sequence[Slot]) -> Iterator[RankDivergence]:
        for slot in outputs:
            if launch.proves(slot):
                groups = groups_of(launch.bits(slot))
                yield RankDivergence("output", launch.first, groups, launch.name(slot))
            else:
                self.unproven += 1

    def _altered(self, launch: RankLaunch, unequal: Sequence[Slot]) -> Iterator[RankDivergence]:
        # a result that a collective left equal on all ranks, and that nothing should have written since
        for slot in unequal:
            writers = {
                rank: event.row.line.writers.get(slot.position, "")
                for rank, event in launch.step.items()
                if event.row
            }
            name = Counter(writers.values()).most_common(1)[0][0]
            if not self._keeps_alike(name):
                continue
            if len(set(writers.values())) > 1:
                by_rank = {
                    rank: f"last written by {one or 'a launch, or nobody'}" for rank, one in writers.items()
                }
            elif _offsets(slot, launch.step) > 1 or name in self._spoilt:
                continue  # each rank reads its own part; or the difference follows from an earlier one
            else:
                by_rank = launch.bits(slot)
            argument = f"{launch.name(slot)}, which {name} left"
            yield RankDivergence("altered", launch.first, groups_of(by_rank), argument)

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
            if not _are_digested(events):
                self.undigested += 1
                self.undigested_collectives += 1
                continue
            for number, by_rank in _unequal(events):
                self._spoilt.add(first.name)
                yield RankDivergence("collective", first, groups_of(by_rank), f"result {number}")

    def _update(self, step: RankStep) -> Iterator[RankDivergence]:
        first = next(iter(step.values()))
        assert first.landmark is not None
        name = first.name.removeprefix("before ")
        key = (name, first.landmark.results)
        self.updates += name == first.name
        if not _are_digested(step):
            self.undigested += 1
            return
        unequal = dict(_unequal(step))
        equal = set(range(len(first.results or ()))) - unequal.keys()
        if name != first.name or key not in self._equal:
            self._equal[key] = self._equal.get(key, equal) & equal
            names = self._names.setdefault(name, first.landmark.names)
            for number in unequal:
                writes = unlike_writes(self.run, step, number) if len(self.own) < EXPLAINED else None
                self.own.append(OwnParameter(_parameter(number, names), writes))
        self.compared_updates += name == first.name and bool(self._equal[key])
        diverged = sorted(unequal.keys() & self._equal[key])
        for number in diverged:
            self._equal[key].discard(number)
            groups = groups_of(unequal[number])
            argument = _parameter(number, self._names.get(name, ()))
            divergence = RankDivergence("update", first, groups, argument)
            yield self._explained(divergence, step, number) if number == diverged[0] else divergence

    def _explained(self, divergence: RankDivergence, step: RankStep, number: int) -> RankDivergence:
        # once for all parameters
        gradients = unlike_gradients(self.run, step, number)
        writes = unlike_writes(self.run, step, number, gradient=True) if not gradients else None
        own = unlike_writes(self.run, step, number) if not (gradients or writes) else None
        calls = unlike_arguments(self.run, _launches_before(step))
        return replace(divergence, calls=calls, gradients=gradients, writes=writes, own_writes=own)


def _parameter(number: int, names: Sequence[str]) -> str:
    name = names[number] if number < len(names) else ""
    return f"parameter {number}, {name}" if name else f"parameter {number}"


def _launches_before(step: RankStep) -> dict[int, int]:
    return {rank: event.launch for rank, event in step.items()}


def _are_digested(step: RankStep) -> bool:
    # on every rank, and the same number of tensors
    counts = {None if event.results is None else len(event.results) for event in step.values()}
    return len(counts) == 1 and None not in counts


def _unequal(step: RankStep) -> Iterator[tuple[int, dict[int, str]]]:
    # the results of a landmark that differ between ranks: which, and the bits of each
    for number in range(min(len(event.results or ()) for event in step.values())):
        by_rank = {rank: (event.results or ())[number] for rank, event in step.items()}
        if len(set(by_rank.values())) > 1:
            yield number, by_rank


def _offsets(slot: Slot, step: RankStep) -> int:
    metas = [event.launched[1].args[slot.position].tensor for event in step.values() if event.launched]
    return len({meta.offset for meta in metas if meta})
