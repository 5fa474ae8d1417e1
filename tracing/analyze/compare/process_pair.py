"""Compares one process of each run, launch by launch, and separates causes from consequences."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tracing.analyze.align.alignment import Alignment
from tracing.analyze.align.launch_matching import Queue
from tracing.analyze.compare.causes import Causes, Follows
from tracing.analyze.compare.comparison_notes import Notes
from tracing.analyze.compare.divergence import (
    Cause,
    Divergence,
    Host,
    InputDiffers,
    LaunchDiffers,
    LaunchPair,
    OneSided,
    OperatorCause,
    OrderDiffers,
    OutputDiffers,
    ReadOutside,
    Uninitialised,
    UnknownCause,
    WrittenElsewhere,
)
from tracing.analyze.compare.equal_prefix import FIRST, Prefix, equal_prefix
from tracing.analyze.compare.kernel_code import CodeDifference, KernelCodes
from tracing.analyze.compare.launch_order import LaunchOrder, Partners
from tracing.analyze.compare.pairing import Pairing, Status
from tracing.analyze.compare.signature_pair import (
    SettingChange,
    SignaturePair,
    Slot,
    identities,
    signature_pair,
)
from tracing.analyze.compare.timeline import Position, Timeline, TimelineStep
from tracing.analyze.compare.winners import RecordedWinners
from tracing.analyze.runs.digest_ranges import Blame, blame
from tracing.analyze.runs.endings import cut_short, ending
from tracing.errors import Problem
from tracing.model import TensorValue

RunIndex = Literal[0, 1]

_PAUSES = 32  # how often a comparison goes on to compare columns


@dataclass(slots=True)
class _Gap:
    # launches in a row that only one run has
    side: RunIndex
    first: TimelineStep
    count: int = 0
    changed: bool = False


@dataclass(slots=True)
class _Seen:
    # what differs in one pair of launches
    a: TimelineStep
    b: TimelineStep
    pair: SignaturePair
    inputs: list[Slot] = field(default_factory=list)
    outputs: list[Slot] = field(default_factory=list)


class _Pause:
    # where the comparison launch by launch may end: both runs in step, and at the end of a line of digests

    def __init__(self, allowed: bool) -> None:
        self._allowed = allowed
        self.counts: list[Position] = []  # how far each run was read
        self.idle: Callable[[], bool] = lambda: False
        self.at: Position | None = None
        self._at_end = [False, False]

    def count(self, side: RunIndex, step: TimelineStep) -> None:
        launches, lines = self.counts[side]
        self._at_end[side] = step.ends_line
        self.counts[side] = Position(launches + 1, lines + step.ends_line)

    def reached(self) -> bool:
        if self.at is None and self._allowed and all(self._at_end) and self.counts[0] == self.counts[1]:
            self.at = self.counts[0] if self.idle() else None
        return self.at is not None


class ProcessPair:
    """One process of each run."""

    def __init__(self, notes: Notes, rank: int, processes: tuple[str, str], codes: KernelCodes) -> None:
        """Compare process 0 of run a with process 1 of run b; `notes` takes what is not reported."""
        self._notes, self._rank, self._processes, self._codes = notes, rank, processes, codes
        self._runs = (notes.a, notes.b)
        self._known = (notes.a.signatures(processes[0]), notes.b.signatures(processes[1]))
        self._joiners = (notes.a.joiner(processes[0]), notes.b.joiner(processes[1]))
        self._sites = (notes.a.sites(processes[0]), notes.b.sites(processes[1]))
        self._pairs: dict[object, SignaturePair] = {}
        self._timelines = tuple(
            Timeline(run, process, known)
            for run, process, known in zip(self._runs, processes, self._known, strict=True)
        )
        self._pairing = Pairing()
        self._causes = Causes(
            self._timelines[0], self._timelines[1], self._pairing, notes.unknown, notes.unrecorded
        )
        self._pauses = 0
        self._equal_to_the_end: tuple[Position, Position] | None = None  # launches that are not passed over
        self._keys: tuple[dict[int, str], dict[int, str]] = ({}, {})  # by signature
        self._identities = identities(self._known[0]), identities(self._known[1])
        shared = set(self._identities[0].values()) & set(self._identities[1].values())
        self._shared: dict[object, int] = {one: n for n, one in enumerate(shared)}
        self._winners = RecordedWinners(notes.a, notes.b)
        self._order = LaunchOrder()
        self.unshown: OrderDiffers | None = None  # of launches that are each equal
        self._gap: _Gap | None = None
        self._cut: set[RunIndex] = set()  # runs that could not be read to their end

    def differences(self) -> Iterator[Divergence]:
        """The differences in launch order, without consequences, with repetitions."""
        start, queues = FIRST, dict[Queue, Queue]()
        while True:
            equal = Prefix(start, False, {})
            if self._notes.covers is None:
                equal = equal_prefix(*self._runs, self._processes, self._codes, start)
            self._notes.pairs += equal.stop.launches - start.launches
            queues.update(equal.queues)
            if equal.whole:
                self._equal_to_the_end = start, equal.stop
                break
            self._pass_over(start, equal.stop)
            pause = _Pause(self._may_pause())
            yield from self._stepwise(equal.stop, queues, pause)
            if pause.at is None:
                break
            start = pause.at
        yield from self._end()

    def cause_of(self, a: TensorValue, b: TensorValue) -> Cause | Follows | None:
        """The cause of a different tensor result; call it after `differences` has ended."""
        if self._equal_to_the_end is not None:
            self._pass_over(*self._equal_to_the_end)
            self._equal_to_the_end = None
        for timeline in self._timelines:
            timeline.finish()
        return self._causes.of_result(a, b)

    def _pass_over(self, start: Position, stop: Position) -> None:
        following = [timeline.pass_over(start, stop) for timeline in self._timelines]
        if stop != start:
            self._pairing.equal_until(following[0])

    def _may_pause(self) -> bool:
        # going on to compare columns means to read both runs from their beginnings, up to there
        self._pauses += 1
        return self._pauses <= _PAUSES and self._notes.covers is None

    def _stepwise(self, start: Position, queues: dict[Queue, Queue], pause: _Pause) -> Iterator[Divergence]:
        # launch by launch, until the runs are in step at the end of a line of digests
        pause.counts = [start, start]
        aligned = Alignment(
            self._steps(0, start, pause), self._steps(1, start, pause), self, queues, self._notes.window,
        )  # fmt: skip
        pause.idle = aligned.is_idle
        for a, b, moved in aligned:
            if a is not None and b is not None:
                if self._gap and not moved:
                    yield self._ended_gap()
                self._notes.pairs += 1
                queues[a.queue] = b.queue
                yield from self._compared(a, b, moved)
            else:
                yield from self._one_sided(a, b)

    def _steps(self, side: RunIndex, start: Position, pause: _Pause) -> Iterator[TimelineStep]:
        try:
            for step in self._timelines[side].steps(start, self._notes.covers):
                pause.count(side, step)
                yield step
                if pause.reached():
                    return
        except Problem as problem:
            self._cut.add(side)
            self._notes.add(f"{problem.problem}; compared up to there")

    # ---- what the alignment asks

    def kernel(self, launch: TimelineStep, side: int) -> str:
        """The name of its kernel."""
        return launch.kernel.name

    def exact(self, launch: TimelineStep, side: int) -> str:
        """Equal for launches of equal code, configuration and arguments."""
        number = launch.row.line.signature
        known = self._keys[side].get(number)
        if known is None:
            code, identity = self._codes.key(launch.kernel, side), self._identities[side].get(number)
            own = f"{code} {'ab'[side]}{number}"  # the other run has no such launch
            shared = identity is not None and identity in self._shared
            known = self._keys[side][number] = f"{code} {self._shared[identity]}" if shared else own
        return known

    def content(self, launch: TimelineStep) -> Hashable:
        """The bits that it read and wrote."""
        if launch.access is not None:
            return tuple(sorted(launch.access.read.items())), tuple(sorted(launch.access.written.items()))
        row = launch.row
        return tuple(
            (row.digest(n, "before") if arg.reads else "", row.digest(n, "after") if arg.writes else "")
            for n, arg in enumerate(launch.signature.args)
        )

    def permuted(self, a: TimelineStep, b: TimelineStep) -> bool:
        """True if the program may have made these launches in another order."""
        seen = self._seen(a, b)
        if seen.pair.changes or self._code(seen) is not None:
            return True
        return any(not isinstance(self._causes.of(a, b, slot.position), Follows) for slot in seen.inputs)

    def common(self, a: TimelineStep, b: TimelineStep) -> int:
        """The number of equal inputs; an input that a kernel only reads counts twice."""
        seen = self._seen(a, b)
        equal = [slot for slot in seen.pair.slots if slot.side == "before" and slot not in seen.inputs]
        return sum(1 if a.signature.args[slot.position].writes else 2 for slot in equal)

    def context(self, a: TimelineStep, b: TimelineStep) -> int:
        """Whether they stand on one line of the program, and how many operators before them are equal."""
        same_site = self._site(a, 0) == self._site(b, 1)
        return 16 * same_site + _common_end(a.operators, b.operators)

    def _site(self, step: TimelineStep, side: int) -> tuple[str, int, int] | None:
        site = self._sites[side].get(step.row.line.site)
        return (site.file, site.line, site.instruction) if site else None

    def equal(self, a: TimelineStep, b: TimelineStep) -> bool:
        """True if they are launched alike, and read and wrote equal bits."""
        seen = self._seen(a, b)
        outputs = [slot for slot in seen.outputs if _touched_equally(slot, a, b) is not True]
        return not (seen.inputs or outputs or seen.pair.changes or self._code(seen))

    # ---- two launches that may be equal

    def _pair(self, a: TimelineStep, b: TimelineStep) -> SignaturePair:
        key = (a.row.line.signature, *a.row.pattern, b.row.line.signature, *b.row.pattern)
        pair = self._pairs.get(key)
        if pair is None:
            pair = signature_pair(a.row, b.row, (a.kernel, a.signature), (b.kernel, b.signature))
            self._pairs[key] = pair
            self._notes.addresses.update((a.kernel.name, name) for name in pair.addresses)
        return pair

    def _seen(self, a: TimelineStep, b: TimelineStep) -> _Seen:
        seen = _Seen(a, b, self._pair(a, b))
        for slot in seen.pair.differing(a.row, b.row):
            if slot.side == "before":
                if _touched_equally(slot, a, b) is not True:
                    seen.inputs.append(slot)
            elif slot.differs_by_writing(a.row, b.row):
                seen.outputs.append(slot)
        return seen

    # ---- a pair of launches

    def _compared(self, a: TimelineStep, b: TimelineStep, moved: bool) -> Iterator[Divergence]:
        seen = self._seen(a, b)
        if a.row.batch is None or b.row.batch is None:
            self._notes.undigested += 1
        if a.kernel.name == b.kernel.name:
            self._pairing.add(a.index, b.index)
        else:
            self._pairing.alone(a.index, 0)
            self._pairing.alone(b.index, 1)
        code = self._code(seen)
        divergences: list[Divergence] = []
        equal = not (seen.inputs or seen.outputs or seen.pair.changes or code)
        if not equal:
            divergences = list(self._different(seen))
        for exchange in self._order.add(Partners(a, b, equal), moved=moved):
            order = OrderDiffers(
                self._launches(*exchange.first[:2]), self._launches(*exchange.second[:2]), exchange.argument
            )
            if exchange.shown:
                yield order
            else:
                self.unshown = self.unshown or order
        yield from divergences

    def _different(self, seen: _Seen) -> Iterator[Divergence]:
        a, b = seen.a, seen.b
        launches = self._launches(a, b)
        causes = {slot: self._causes.of(a, b, slot.position) for slot in seen.inputs}
        loose = {slot: one for slot, one in causes.items() if isinstance(one, Uninitialised)}
        whose = {slot: self._blame(slot, seen, launches) for slot in seen.outputs}
        outputs = [slot for slot, one in whose.items() if one != "same"]
        code = self._code(seen)
        if seen.pair.changes or code:
            names = tuple(a.signature.args[slot.position].name for slot in outputs)
            tuned = not code and self._winners.explain(a.kernel.name, seen.pair.changes)
            yield LaunchDiffers(launches, seen.pair.changes, code, tuned, names)
            self._mark(seen, outputs, "differs")
            return
        divergences = [
            self._input(launches, slot, cause) for slot, cause in causes.items() if slot not in loose
        ]
        if divergences and not any(divergences) and not self._notes.reported and self.unshown is not None:
            yield self.unshown  # whose launches are each equal, and wrote the same memory in another order
        yield from (one for one in divergences if one is not None)
        if len(loose) < len(seen.inputs):
            self._mark(seen, outputs, "differs")
        elif loose:
            if outputs:
                self._notes.depends(InputDiffers(launches, slot.position, one) for slot, one in loose.items())
            self._mark(seen, outputs, "loose")
        else:
            yield from self._outputs(launches, seen, whose)

    def _code(self, seen: _Seen) -> CodeDifference | None:
        a, b = seen.a.kernel, seen.b.kernel
        alike = not seen.pair.changes
        return self._codes.difference(a, b, alike=alike) if a.name == b.name else None

    def _input(self, launches: LaunchPair, slot: Slot, cause: Cause | Follows) -> Divergence | None:
        # None: it follows from what was reported, or may
        if isinstance(cause, Follows):
            self._notes.follows(
                InputDiffers(launches, slot.position, UnknownCause("it follows from another one"))
            )
            return None
        if isinstance(cause, WrittenElsewhere) and cause.writer.a is not None:
            self._pairing.accuse(cause.writer.a, cause.writer.argument)
        divergence = InputDiffers(launches, slot.position, cause)
        if (self._notes.reported or self._notes.started) and not _proven(cause):
            self._notes.follows(divergence)
            return None
        return divergence

    def _overlap(self, seen: _Seen) -> SettingChange | None:
        # two arguments that share other bytes than in the other run make another launch
        a, b = seen.a.overlaps(), seen.b.overlaps()
        return SettingChange("overlap of arguments", _overlap_text(a), _overlap_text(b)) if a != b else None

    def _outputs(self, launches: LaunchPair, seen: _Seen, whose: dict[Slot, _Whose]) -> Iterator[Divergence]:
        accused = [slot for slot, one in whose.items() if one == "launch"]
        overruns = [one for step in (seen.b, seen.a) for one in step.out_of_bounds if one.access == "load"]
        if accused and overruns:
            yield OutputDiffers(launches, accused[0].position, ReadOutside(overruns[0].argument))
            self._mark(seen, accused, "differs")
            return
        if accused and seen.pair.addresses:
            yield from self._through_addresses(launches, seen, accused)
            return
        if accused and (change := self._overlap(seen)):
            names = tuple(seen.a.signature.args[slot.position].name for slot in accused)
            yield LaunchDiffers(launches, (change,), None, False, names)
            self._mark(seen, accused, "differs")
            return
        for slot, one in whose.items():
            if one == "launch":
                yield OutputDiffers(launches, slot.position)
                self._mark(seen, [slot], "differs")
            elif one != "same":
                doubt: Literal["unwritten", "untouched"] = "unwritten" if one == "open" else "untouched"
                self._notes.doubtful(OutputDiffers(launches, slot.position, doubt))
                self._mark(seen, [slot], "loose")

    def _through_addresses(
        self, launches: LaunchPair, seen: _Seen, accused: Sequence[Slot]
    ) -> Iterator[Divergence]:
        # what a kernel read through addresses is no argument of it, and may differ
        self._mark(seen, accused, "differs")
        divergence = OutputDiffers(launches, accused[0].position, "addresses")
        if self._notes.reported or self._notes.started:
            self._notes.follows(divergence)
        else:
            yield divergence

    def _blame(self, slot: Slot, seen: _Seen, launches: LaunchPair) -> _Whose:
        equally = _touched_equally(slot, seen.a, seen.b)
        if equally is not None:
            return "same" if equally else "launch"
        if slot.position in {one.position for one in seen.inputs}:
            return "launch"
        return _blame(slot, launches)

    def _mark(self, seen: _Seen, outputs: Sequence[Slot], status: Status) -> None:
        for slot in outputs:
            self._pairing.mark(seen.a.index, slot.position, status)
        compared = {slot.position for slot in seen.pair.slots if slot.side == "after"}
        changed = {change.name for change in seen.pair.changes}
        for position, arg in enumerate(seen.a.signature.args):
            if changed and arg.writes and (position not in compared or arg.name in changed):
                self._pairing.mark(seen.a.index, position, status)

    def _launches(self, a: TimelineStep | None, b: TimelineStep | None) -> LaunchPair:
        joined = [
            joiner.launch(step.row) if step is not None else None
            for joiner, step in zip(self._joiners, (a, b), strict=True)
        ]
        return LaunchPair(self._rank, joined[0], joined[1])

    # ---- launches that only one run has

    def _one_sided(self, a: TimelineStep | None, b: TimelineStep | None) -> Iterator[Divergence]:
        side: RunIndex = 0 if a is not None else 1
        step = a or b
        assert step is not None
        if self._gap and self._gap.side != side:
            yield self._ended_gap()
        if self._gap is None:
            self._gap = _Gap(side, step)
        self._gap.count += 1
        self._gap.changed |= _changed(step)
        self._pairing.alone(step.index, side)

    def _ended_gap(self, *, last: bool = False) -> Divergence:
        assert self._gap is not None
        gap, self._gap = self._gap, None
        pair = self._launches(*((gap.first, None) if gap.side == 0 else (None, gap.first)))
        return OneSided(pair, gap.count, last, gap.changed)

    def _end(self) -> Iterator[Divergence]:
        # one run goes on where the other has ended; no difference if that one is not whole
        sides: tuple[RunIndex, RunIndex] = (0, 1)
        for side in sides:
            run = self._runs[side]
            if early := ending(run, self._rank):
                who = f"rank {self._rank} of {run.name}" if self._rank else run.name
                self._notes.add(f"{who} {early}; compared up to there")
                self._cut.add(side)
        self._notes.swapped += self._order.independent
        if not self._gap:
            return
        ended: RunIndex = 1 if self._gap.side == 0 else 0
        if ended not in self._cut and not self._lost(ended):
            yield self._ended_gap(last=True)

    def _lost(self, side: RunIndex) -> bool:
        run, process = self._runs[side], self._processes[side]
        lost = cut_short(run, process)
        if lost:
            self._notes.add(f"{run.path} is cut short: its last launches are lost; compared up to there")
        return lost


_Whose = Literal["launch", "untouched", "open", "same"]


def _touched_equally(slot: Slot, a: TimelineStep, b: TimelineStep) -> bool | None:
    # whether both launches read or wrote the same bytes; None: only whole arguments were digested
    if a.access is None or b.access is None:
        return None
    field = "read" if slot.side == "before" else "written"
    ours, theirs = (getattr(step.access, field).get(slot.position, "") for step in (a, b))
    return bool(ours == theirs)


def _blame(slot: Slot, launches: LaunchPair) -> Blame:
    assert launches.a is not None and launches.b is not None
    one, other = (launch.args[slot.position] for launch in (launches.a, launches.b))
    if not (one.before and other.before and one.after and other.after):
        return "launch"  # as far as digests were taken
    return blame((one.before, other.before), (one.after, other.after))


def _common_end(a: Sequence[object], b: Sequence[object]) -> int:
    # how many are equal, from the last one on; equal sequences have most in common
    if a == b:
        return 15
    backwards = zip(reversed(a), reversed(b), strict=False)
    return next((n for n, (one, other) in enumerate(backwards) if one != other), min(len(a), len(b)))


def _overlap_text(overlaps: Sequence[tuple[str, str, int]]) -> str:
    return ", ".join(f"{one} and {other} {distance:+d} bytes" for one, other, distance in overlaps) or "none"


def _proven(cause: Cause) -> bool:
    return cause.proven if isinstance(cause, (OperatorCause, Host)) else not isinstance(cause, UnknownCause)


def _changed(step: TimelineStep) -> bool:
    # whether a launch left anything other than it found, as far as it was digested
    written = [n for n, arg in enumerate(step.signature.args) if arg.writes]
    bits = [(step.row.digest(n, "before"), step.row.digest(n, "after")) for n in written]
    return any(before != after or not after for before, after in bits)
