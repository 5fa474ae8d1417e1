"""Compares one process of each run, launch by launch, and separates causes from consequences."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from tracing.analyze.align.alignment import Alignment
from tracing.analyze.align.launch_matching import Queue
from tracing.analyze.compare.cause_kinds import Cause
from tracing.analyze.compare.causes.cause_answer import Follows
from tracing.analyze.compare.causes.input_causes import Causes
from tracing.analyze.compare.common_steps import CommonSteps
from tracing.analyze.compare.comparison_notes import Notes
from tracing.analyze.compare.divergence_kinds import Divergence, LaunchPair, OrderDiffers
from tracing.analyze.compare.equal_prefix import FIRST, Prefix, equal_prefix
from tracing.analyze.compare.kernel_code import KernelCodes
from tracing.analyze.compare.launch_counts import LaunchCounts
from tracing.analyze.compare.launch_difference import LaunchDifferences
from tracing.analyze.compare.launch_divergences import LaunchDivergences
from tracing.analyze.compare.launch_likeness import LaunchLikeness
from tracing.analyze.compare.launch_order import LaunchOrder, Partners
from tracing.analyze.compare.one_sided_launches import OneSidedLaunches, RunIndex
from tracing.analyze.compare.pairing import Pairing
from tracing.analyze.compare.timeline.timeline import Timeline
from tracing.analyze.compare.timeline.timeline_step import Position, TimelineStep
from tracing.analyze.compare.unwritten_memory import unwritten_memory
from tracing.analyze.runs.outcomes import cut_short, ending
from tracing.errors import Problem
from tracing.model import TensorValue

_PAUSES = 32  # maximum of switches back to comparing columns


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
        """Compare process 0 of run a with process 1 of run b; `notes` receives counts and doubts."""
        self._notes, self._rank, self._processes, self._codes = notes, rank, processes, codes
        self._runs = (notes.a, notes.b)
        steps = (
            CommonSteps(self._runs, processes) if any(one.info.steps.partial for one in self._runs) else None
        )
        self._steps_in_both = None if steps is None or steps.all else steps
        known = notes.a.signatures(processes[0]), notes.b.signatures(processes[1])
        sites = notes.a.sites(processes[0]), notes.b.sites(processes[1])
        self._joiners = (notes.a.joiner(processes[0]), notes.b.joiner(processes[1]))
        a = Timeline(notes.a, processes[0], known[0])
        b = Timeline(notes.b, processes[1], known[1])
        self._timelines = (a, b)
        self._pairing = Pairing()
        self._causes = Causes(a, b, self._pairing, notes.unknown, notes.unrecorded)
        self._differences = LaunchDifferences(notes, codes)
        counts = LaunchCounts(self._runs, processes, notes.covers, self._steps_in_both)
        self._likeness = LaunchLikeness(
            known, sites, codes, self._differences, self._causes, self._timelines, counts
        )
        self._divergences = LaunchDivergences(notes, self._pairing, self._causes, self._differences)
        self._one_sided = OneSidedLaunches(self._pairing, self._launches)
        self._pauses = 0
        self._equal_to_the_end: tuple[Position, Position] | None = None  # launches to compare
        self._order = LaunchOrder()
        self.unshown: OrderDiffers | None = None  # of launches that are equal one by one
        self._cut: set[RunIndex] = set()  # runs that could not be read to their end

    def differences(self) -> Iterator[Divergence]:
        """The differences in launch order, without consequences, with repetitions."""
        if self._steps_in_both is not None:
            self._notes.select(self._steps_in_both.text)
            for difference in self._steps_in_both.differences():
                self._notes.add(difference)
        start, queues = FIRST, dict[Queue, Queue]()
        while True:
            equal = Prefix(start, False, {})
            if not self._selects:
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
        # switching back to columns reads both runs from their beginnings to the present position
        self._pauses += 1
        return self._pauses <= _PAUSES and not self._selects

    @property
    def _selects(self) -> bool:
        return self._notes.covers is not None or self._steps_in_both is not None

    def _stepwise(self, start: Position, queues: dict[Queue, Queue], pause: _Pause) -> Iterator[Divergence]:
        # launch by launch, until the runs are in step at the end of a line of digests
        pause.counts = [start, start]
        steps = self._steps(0, start, pause), self._steps(1, start, pause)
        aligned = Alignment(*steps, self._likeness, queues, self._notes.window)
        pause.idle = aligned.is_idle
        for a, b, moved in aligned:
            if a is not None and b is not None:
                if not moved:
                    yield from self._one_sided.ended()
                self._notes.pairs += 1
                queues[a.queue] = b.queue
                yield from self._compared(a, b, moved)
            elif a is not None:
                yield from self._one_sided.add(a, 0)
            elif b is not None:
                yield from self._one_sided.add(b, 1)

    def _steps(self, side: RunIndex, start: Position, pause: _Pause) -> Iterator[TimelineStep]:
        both = self._steps_in_both
        chosen = functools.partial(both.covers, side) if both is not None else None
        try:
            for step in self._timelines[side].steps(start, self._notes.covers, chosen):
                pause.count(side, step)
                yield step
                if pause.reached():
                    return
        except Problem as problem:
            self._cut.add(side)
            self._notes.damages(problem, "later launches are not compared")

    def _compared(self, a: TimelineStep, b: TimelineStep, moved: bool) -> Iterator[Divergence]:
        seen = self._differences.of(a, b)
        if a.row.batch is None or b.row.batch is None:
            self._notes.undigested += 1
        if a.kernel.name == b.kernel.name:
            self._pairing.add(a.index, b.index)
        else:
            self._pairing.unpaired(a.index, 0)
            self._pairing.unpaired(b.index, 1)
        self._notes.unwritten_memory += unwritten_memory(a, b, seen.ignored, self._rank)
        code = self._differences.code(seen)
        divergences: list[Divergence] = []
        equal = not (seen.inputs or seen.outputs or seen.pair.changes or code)
        if not equal:
            divergences = list(self._divergences.of(seen, self._launches(a, b), self.unshown))
        for exchange in self._order.add(Partners(a, b, equal), moved=moved):
            first, second = (self._launches(*one[:2]) for one in (exchange.first, exchange.second))
            order = OrderDiffers(first, second, *exchange.arguments)
            if exchange.shown:
                yield order
            else:
                self.unshown = self.unshown or order
        yield from divergences

    def _launches(self, a: TimelineStep | None, b: TimelineStep | None) -> LaunchPair:
        joined = [
            joiner.launch(step.row) if step is not None else None
            for joiner, step in zip(self._joiners, (a, b), strict=True)
        ]
        return LaunchPair(self._rank, joined[0], joined[1])

    def _end(self) -> Iterator[Divergence]:
        # one run continues after the end of the other; no difference if the other is incomplete
        sides: tuple[RunIndex, RunIndex] = (0, 1)
        for side in sides:
            run = self._runs[side]
            if early := ending(run, self._rank):
                who = f"rank {self._rank} of {run.name}" if self._rank else run.name
                self._notes.add(f"{who} {early}; later launches are not compared")
                self._cut.add(side)
        self._notes.swapped += self._order.independent
        if self._one_sided.side is None:
            return
        ended: RunIndex = 1 if self._one_sided.side == 0 else 0
        if ended not in self._cut and not self._lost(ended):
            yield from self._one_sided.ended(last=True)

    def _lost(self, side: RunIndex) -> bool:
        run, process = self._runs[side], self._processes[side]
        lost = cut_short(run, process)
        if lost:
            self._notes.add(
                f"{run.path} is cut short: its last launches are lost; later launches are not compared"
            )
        return lost
