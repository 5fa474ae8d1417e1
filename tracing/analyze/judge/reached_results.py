"""Which results of a case depend on each launch: what it wrote, and what was computed from that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tracing.analyze.compare.timeline.memory import Sources, Write, span
from tracing.analyze.compare.timeline.timeline import Timeline
from tracing.analyze.compare.timeline.timeline_step import Position
from tracing.model import Outcome, Result, TensorValue
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class ReachedResults:
    """The results that depend on what one launch wrote, by name."""

    agreeing: tuple[str, ...] = ()  # with eager, and certain to depend on it
    differing: tuple[str, ...] = ()
    written: tuple[str, ...] = ()  # results that agree, if they are all that the launch wrote
    others: tuple[str, ...] = ()  # that do not differ, and may depend on it

    @property
    def cleared(self) -> bool:
        """True if the launch explains no difference: all that it wrote agrees, or only other results follow.

        What no result may depend on is not cleared: its values may pass through the host.
        """
        return bool(self.written) or (bool(self.agreeing or self.others) and not self.differing)


def reached_results(run: Run, process: str, outcome: Outcome) -> Mapping[int, ReachedResults]:
    """By launch, the tensors among the results that depend on it; empty: that is not known.

    It is known if each result that differs is a tensor whose writers were all recorded. A value that
    passes through the host, as by `.item()`, is not followed.

    Cost: a pass over the launches and operators of the process, some 40 µs each.
    """
    if run.info.operators == "none":
        return {}
    writers = _Writers(Timeline(run, process, run.signatures(process)))
    differing = {name: writers.origins(value) for name, value in _tensors(run, process, outcome.differing)}
    if not differing or len(differing) < len(outcome.differing) or None in differing.values():
        return {}
    names = [one.name for one in run.view(process, Result, Result) if one.name not in differing]
    others = dict(_tensors(run, process, names))
    reaching = {name: writers.origins(value) for name, value in others.items()}
    agree = {name: value for name, value in others.items() if name not in outcome.other_numbers}
    agreeing = {name: writers.certain_origins(value) for name, value in agree.items()}
    written = writers.all_written(agree)
    return {
        launch: ReachedResults(
            tuple(name for name, origins in agreeing.items() if origins and launch in origins),
            tuple(name for name, origins in differing.items() if origins and launch in origins),
            written.get(launch, ()),
            tuple(name for name, origins in reaching.items() if origins and launch in origins),
        )
        for launch in writers.launches
    }


def _tensors(run: Run, process: str, names: Iterable[str]) -> list[tuple[str, TensorValue]]:
    values = {one.name: one.value for one in run.view(process, Result, Result)}
    pairs = ((name, values.get(name)) for name in names)
    return [(name, value) for name, value in pairs if isinstance(value, TensorValue) and value.address]


class _Writers:
    def __init__(self, timeline: Timeline) -> None:
        self._possible, self._certain = _Origins(), _Origins()
        self._outputs: dict[int, list[int]] = {}  # positions of arguments that a launch may write
        self._timeline = timeline
        for step in timeline.steps(Position()):
            outputs = [n for n, one in enumerate(step.signature.args) if one.writes]
            self._outputs[step.index] = outputs
            sources = list(step.sources.values())
            self._possible.launched(step.index, sources)
            # which of its inputs each of several outputs depends on is not known
            self._certain.launched(step.index, sources if len(outputs) == 1 else [])

    @property
    def launches(self) -> Iterable[int]:
        return self._outputs

    def origins(self, value: TensorValue) -> frozenset[int] | None:
        """The launches that a tensor may depend on; None: not all of its writers were recorded."""
        return self._possible.joined([self._sources(value)])

    def certain_origins(self, value: TensorValue) -> frozenset[int] | None:
        """The launches that a tensor is certain to depend on; None: not all of its writers were recorded."""
        return self._certain.joined([self._sources(value)])

    def all_written(self, results: Mapping[str, TensorValue]) -> dict[int, tuple[str, ...]]:
        """By launch, the names of the results that are all that it wrote; without those that wrote more."""
        names: dict[int, dict[int, str]] = {}  # by launch and position of the argument
        for name, value in results.items():
            match self._sources(value):
                case [Write(kind="launch") as write] if write.left.bits == value.digest.bits:
                    names.setdefault(write.number, {}).setdefault(write.position, name)
        return {
            launch: tuple(of_it.values())
            for launch, of_it in names.items()
            if {*of_it} == {*self._outputs[launch]}
        }

    def _sources(self, value: TensorValue) -> Sources:
        start, stop = span(value.address, value.meta)
        return self._timeline.memory.sources(start, stop, value.meta)


class _Origins:
    # the launches that each launch and each operator depends on; None: not all writers were recorded

    def __init__(self) -> None:
        self._launches: dict[int, frozenset[int] | None] = {}
        self._operators: dict[int, frozenset[int] | None] = {}  # by number of the call

    def launched(self, launch: int, reads: Iterable[Sources]) -> None:
        """Add a launch, which depends on what it reads."""
        self._launches[launch] = self.joined(reads, {launch})

    def joined(self, given: Iterable[Sources], own: Iterable[int] = ()) -> frozenset[int] | None:
        """The launches that something depends on which was computed from these writes."""
        joined = frozenset(own)
        for write in {write for sources in given for write in sources}:
            origins = self._of(write)
            if origins is None:
                return None
            joined |= origins
        return joined

    def _of(self, write: Write | None) -> frozenset[int] | None:
        if write is None or write.kind == "seen":
            return None
        if write.kind == "launch":
            return self._launches[write.number]
        if write.kind == "start":
            return frozenset()
        if write.number not in self._operators:  # of a long chain of operators the first ones are not known
            known = write.kind == "allocation" or write.depth > 0
            given = (one.sources for one in write.reads)
            self._operators[write.number] = self.joined(given) if known else None
        return self._operators[write.number]
