"""One process of each of two runs, launch by launch: what differs, and what merely follows from that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tracing.analyze.alignment import Named, aligned
from tracing.analyze.divergence import NO_LAUNCH, Divergence, Kind, Producer
from tracing.analyze.elements import Blame, blame
from tracing.analyze.endings import cut_short, ending
from tracing.analyze.memory import Memory
from tracing.analyze.prefix import Prefix, equal_prefix
from tracing.analyze.tally import Tally
from tracing.analyze.ways import Slot, Way, signature_of, way_of
from tracing.digests import Row
from tracing.errors import Problem
from tracing.model import Kernel, KernelLaunch, Signature


@dataclass(slots=True)
class _Gap:
    # launches in a row that only one run has
    side: Literal["a", "b"]
    first: Row
    count: int = 1


class ProcessPair:
    """One process of each run."""

    def __init__(self, tally: Tally, rank: int, a: str, b: str) -> None:
        """Compare process `a` of run a with process `b` of run b; `tally` is told what is not reported."""
        self._all, self._rank = tally, rank
        self._runs, self._names = (tally.a, tally.b), (a, b)
        self._known = (tally.a.signatures(a), tally.b.signatures(b))
        self._ways: dict[object, Way] = {}
        self._memory = Memory()
        self._gap: _Gap | None = None
        self._cut: set[str] = set()  # runs that could not be read to their end

    def differences(self) -> Iterator[Divergence]:
        """What differs, in launch order, without what follows from it; repetitions stand in it."""
        equal = equal_prefix(*self._runs, *self._names)
        self._all.pairs += equal.launches
        if not equal.whole:
            yield from self._behind(equal)
        yield from self._end()

    def _behind(self, equal: Prefix) -> Iterator[Divergence]:
        self._memory.known(equal.written)
        names = _names(self._known[0]), _names(self._known[1])
        behind = self._rows(0, equal), self._rows(1, equal)
        for a, b in aligned(*behind, *names, equal.streams, self._all.window):
            if a is not None and b is not None:
                if self._gap:
                    yield self._ended_gap()
                self._all.pairs += 1
                way = self._way(a, b)
                if a.batch is None or b.batch is None:
                    self._all.undigested += 1
                slots = way.differing(a, b)
                if slots or way.configuration:
                    yield from self._different(a, b, way, slots)
                else:
                    self._memory.wrote(a, b, way)
            else:
                yield from self._alone(a, b)

    def _rows(self, side: int, behind: Prefix) -> Iterator[Row]:
        try:
            for row in self._runs[side].rows(self._names[side], behind.launches, behind.lines):
                if row.line.signature not in self._known[side]:
                    self._signature(side, row)  # raises
                yield row
        except Problem as problem:
            self._cut.add("ab"[side])
            self._all.note(f"{problem.problem}; compared up to there")

    def _way(self, a: Row, b: Row) -> Way:
        key = (a.line.signature, b.line.signature, a.before, a.after, b.before, b.after)
        way = self._ways.get(key)
        if way is None:
            way = self._ways[key] = way_of(a, b, self._signature(0, a), self._signature(1, b))
        return way

    def _signature(self, side: int, row: Row) -> tuple[Kernel, Signature]:
        return signature_of(row, self._known[side], self._runs[side])

    def _joined(self, side: int, row: Row) -> KernelLaunch:
        return self._runs[side].joined(row, *self._signature(side, row))

    # ---- a pair that differs

    def _different(self, a: Row, b: Row, way: Way, slots: tuple[Slot, ...]) -> Iterator[Divergence]:
        launches = self._joined(0, a), self._joined(1, b)
        inputs = [slot for slot in slots if slot.side == "before"]
        outputs = [slot for slot in slots if slot.side == "after" and slot.differs_by_writing(a, b)]
        blames = {slot: _blame(slot, launches) for slot in outputs if slot.position not in _at(inputs)}
        loose = [slot for slot in outputs if blames.get(slot, "launch") != "launch"]
        proven = [slot for slot in outputs if slot not in loose]
        from_loose = [slot for slot in inputs if self._memory.is_loose(slot, a)]
        fresh = [s for s in inputs if s not in from_loose and not self._memory.follows(s, a, b)]
        fresh += from_loose if outputs else []
        if way.configuration:
            names = tuple(launches[0].args[slot.position].name for slot in outputs)
            yield self._found("launch", launches, *way.configuration, outputs=names)
        for slot in fresh:
            yield self._input(slot, a, b, launches)
        if not inputs and not way.configuration:
            for slot in proven:
                yield self._found("output", launches, *slot.texts(a, b), slot)
        elif not fresh and not way.configuration and len(inputs) > len(from_loose):
            self._all.consequences += 1
        self._memory.taint(fresh, a)
        self._memory.wrote(a, b, way, outputs)
        self._memory.tighten(outputs, a)
        if len(inputs) == len(from_loose) and not way.configuration and not fresh:
            self._left(a, b, launches, {slot: blames[slot] for slot in loose})

    def _left(
        self, a: Row, b: Row, launches: tuple[KernelLaunch, KernelLaunch], loose: Mapping[Slot, Blame]
    ) -> None:
        # results that may differ only where they were not written
        tally = self._all
        self._memory.loosen(loose, a)
        for slot, whose in loose.items():
            found = self._found("output", launches, *slot.texts(a, b), slot, may_be_unwritten=True)
            if whose == "open":
                tally.unwritten += 1
                tally.first_unwritten = tally.first_unwritten or found
            else:
                tally.first_untouched = tally.first_untouched or replace(found, untouched=True)

    def _input(self, slot: Slot, a: Row, b: Row, launches: tuple[KernelLaunch, KernelLaunch]) -> Divergence:
        one, other = slot.texts(a, b)
        operators = a.line.writers.get(slot.position), b.line.writers.get(slot.position)
        operator = operators[0] or operators[1]
        written = self._memory.writer(slot, a)
        producer = None
        if written is not None:
            same = written.meta == slot.meta and written.bits
            changed = [run for run, bits in (("a", one), ("b", other)) if same and bits != written.bits]
            producer = Producer(
                written.launch,
                written.kernel_name,
                written.argument,
                written.outputs,
                written.only_in_a,
                "".join(changed),
                self._memory.is_loose(slot, a),
                written.stream != a.line.stream,
            )
        follows = operator is not None and self._all.reported > 0
        found = self._found("input", launches, one, other, slot, producer, operator, may_follow=follows)
        runs = "".join(run for run, name in zip("ab", operators, strict=True) if name == operator)
        return replace(found, operator_in=runs)

    def _found(
        self,
        kind: Kind,
        launches: tuple[KernelLaunch, KernelLaunch],
        a: str,
        b: str,
        slot: Slot | None = None,
        producer: Producer | None = None,
        operator: str | None = None,
        *,
        may_follow: bool = False,
        may_be_unwritten: bool = False,
        outputs: tuple[str, ...] = (),
    ) -> Divergence:
        one, other = launches
        position = slot.position if slot else None
        argument = one.args[position].name if position is not None else None
        return Divergence(
            kind, self._rank, one.index, one.kernel_name, a, b, one, other, argument, position, producer,
            operator, may_follow, may_be_unwritten, outputs,
        )  # fmt: skip

    # ---- launches that only one run has

    def _alone(self, a: Row | None, b: Row | None) -> Iterator[Divergence]:
        row, side = (a, 0) if a is not None else (b, 1)
        assert row is not None
        letter: Literal["a", "b"] = "a" if side == 0 else "b"
        if self._gap and self._gap.side != letter:
            yield self._ended_gap()
        if self._gap:
            self._gap.count += 1
        else:
            self._gap = _Gap(letter, row)
        way = way_of(row, row, self._signature(side, row), self._signature(side, row))
        self._memory.wrote_alone(row, way, in_a=side == 0)

    def _ended_gap(self, kind: Kind | None = None) -> Divergence:
        assert self._gap is not None
        gap, self._gap = self._gap, None
        launch = self._joined("ab".index(gap.side), gap.first)
        has, lacks = f"launch {launch.index}: {launch.kernel_name}", NO_LAUNCH
        texts = (has, lacks) if gap.side == "a" else (lacks, has)
        kind = kind or ("missing" if gap.side == "a" else "added")
        return Divergence(kind, self._rank, launch.index, launch.kernel_name, *texts, launch, count=gap.count)

    def _end(self) -> Iterator[Divergence]:
        # one run goes on where the other has ended; no difference if that one is not whole
        for side, run in zip("ab", self._runs, strict=True):
            if early := ending(run, self._rank):
                who = f"rank {self._rank} of {run.name}" if self._rank else run.name
                self._all.note(f"{who} {early}; compared up to there")
                self._cut.add(side)
        if not self._gap:
            return
        ended = 1 if self._gap.side == "a" else 0
        if "ab"[ended] not in self._cut and not self._lost(ended):
            yield self._ended_gap("end")

    def _lost(self, side: int) -> bool:
        run, process = self._runs[side], self._names[side]
        lost = cut_short(run, process)
        if lost:
            self._all.note(f"{run.path} is cut short: its last launches are lost; compared up to there")
        return lost


def _names(known: dict[int, tuple[Kernel, Signature]]) -> Named:
    names = {number: kernel.name for number, (kernel, _) in known.items()}
    return lambda number: names.get(number, "")


def _blame(slot: Slot, launches: tuple[KernelLaunch, KernelLaunch]) -> Blame:
    one, other = (launch.args[slot.position] for launch in launches)
    if not (one.before and other.before and one.after and other.after):
        return "launch"  # as far as digests were taken
    return blame((one.before, other.before), (one.after, other.after))


def _at(slots: list[Slot]) -> set[int]:
    return {slot.position for slot in slots}
