"""Which steps of a program a run has: options may leave out steps, and earlier ones may be deleted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from tracing.model import UNMARKED, NotCovered, ProgramStep, RecordingStop, Segment, StepSelection
from tracing.store import Run, rank_of

_OPEN = 1 << 62  # beyond every step and launch


@dataclass(frozen=True, slots=True)
class RecordedSteps:
    """The steps of one process that its run has; a step is the number of an iteration, from 0."""

    selection: StepSelection
    first: Segment | None  # None: nothing was deleted
    stop: RecordingStop | None
    ends: tuple[ProgramStep, ...]  # those that are known, in order

    @classmethod
    def of(cls, run: Run, process: str) -> RecordedSteps:
        """The steps of one process."""
        stop = next(run.view(process, RecordingStop, RecordingStop), None)
        return cls(run.info.steps, run.first_segment(process), stop, tuple(run.steps(process)))

    @property
    def start(self) -> int:
        """The first step of which no launch was deleted."""
        return 0 if self.first is None else self.first.step + (not self.first.whole)

    def step(self, launch: int) -> int:
        """The step of a launch that the run has."""
        at = bisect_right([one.launches for one in self.ends], launch)
        return self.ends[at - 1].index + 1 if at else self.ends[0].index if self.ends else 0

    def launches_at(self, step: int) -> int:
        """The number of launches that the process had made when a step began; beyond all if it never did."""
        if step == 0:
            return 0
        return next((one.launches for one in self.ends if one.index == step - 1), _OPEN)

    def has(self, step: int) -> bool:
        """True if the run has every launch of a step."""
        inside = self.start <= step <= (self.stop.step if self.stop else _OPEN)
        return inside and self.selection.wants(step)

    def has_launch(self, launch: int, step: int) -> bool:
        """True if the run has, or would have, a launch of this number in a step.

        Of a program without steps, the number of the launch decides.
        """
        if self.ends or self.first is None:
            return self.has(step)
        return launch >= self.first.launches

    def missing(self) -> Iterator[NotCovered]:
        """The steps that the run lacks, and the options that left them out."""
        options, deleted = self.selection, self.first
        if deleted is not None and deleted.launches:
            by = " and ".join(_typed(options, ("last", "disk")))
            ask = "ask" if options.last and options.disk else "asks"
            larger = " and ".join(f"--{name}" for name in ("last", "disk") if getattr(options, name))
            yield NotCovered(f"{self._before(deleted)}: deleted, as {by} {ask}", f"a larger {larger}")
        if options.skips:
            by = " ".join(_typed(options, ("every", "steps")))
            yield NotCovered(f"steps that {by} leaves out", "leave out that option")
        if self.stop is not None:
            later = f"launches from {self.stop.launches} on, after step {self.stop.step}"
            why = f"stopped by --until {options.until}: {self.stop.reason}"
            yield NotCovered(f"{later}: {why}", "leave out that option")

    def _before(self, first: Segment) -> str:
        launches = f"launches 0:{first.launches}"
        if not self.ends:
            return launches
        begun = next((one.launches for one in self.ends if one.index == first.step - 1), 0)
        steps = f"steps 0:{first.step}" if first.step else ""
        if not first.whole:
            steps += f"{' and ' if steps else ''}{first.launches - begun} launches of step {first.step}"
        return f"{steps} ({launches})"


def not_covered(run: Run) -> list[NotCovered]:
    """What a run does not cover, by what the recorder noted and by the options that left out steps."""
    return list(dict.fromkeys([*not_covered_steps(run), *run.records(NotCovered), *_unmarked(run)]))


def _unmarked(run: Run) -> list[NotCovered]:
    # a process that was killed did not note it
    processes = run.processes() if run.info.steps.counts_steps else []
    return [UNMARKED] if processes and not any(map(run.steps, processes)) else []


def not_covered_steps(run: Run) -> list[NotCovered]:
    """The steps that options left out, or deleted."""
    missing: dict[NotCovered, None] = {}
    if run.info.steps.partial:
        processes = run.processes(Segment) if run.info.steps.drops else run.processes()
        for process in processes:
            for one in RecordedSteps.of(run, process).missing():
                of = f"of rank {rank_of(process)}: " if run.info.world_size > 1 else ""
                missing[NotCovered(of + one.what, one.setting)] = None
    return list(missing)


def steps_on_disk(run: Run) -> StepSelection:
    """The steps to record once more for the launches that a run has; of a job, those of its first rank."""
    given = run.info.steps
    first = next(iter(run.processes()), "") if given.partial else ""
    known = RecordedSteps.of(run, first) if first else None
    if known is None or not known.ends:
        return StepSelection()
    later = max(0, known.start - given.start)
    start = given.start + -(-later // given.every) * given.every
    stop = given.stop if known.stop is None else known.stop.step + 1
    return StepSelection(every=given.every, start=start, stop=stop)


def options_of(selection: StepSelection) -> list[str]:
    """The options of `tracing run` that select steps, as typed."""
    typed = _typed(selection, ("last", "every", "steps", "until", "disk"))
    return [word for option in typed for word in option.split()]


def _typed(selection: StepSelection, names: tuple[str, ...]) -> Iterator[str]:
    stop = "" if selection.stop is None else selection.stop
    values = {
        "last": str(selection.last) if selection.last else "",
        "every": str(selection.every) if selection.every != 1 else "",
        "steps": f"{selection.start}:{stop}" if selection.start or selection.stop is not None else "",
        "until": selection.until,
        "disk": str(selection.disk) if selection.disk else "",
    }
    yield from (f"--{name} {values[name]}" for name in names if values[name])
