"""`tracing bisect CASE`: search the compiler from the model down to a kernel, and print each build."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.text import Text

from tracing.analyze.bisect.search_events import Building
from tracing.analyze.bisect_case.case_events import (
    CaseAnswer,
    CaseEvent,
    CaseTried,
    Culprit,
    OtherCode,
    PartTried,
    PartUndecided,
    Planned,
    StageBlamed,
    StageTried,
    TogetherBlamed,
)
from tracing.analyze.bisect_case.case_search import CaseSearch
from tracing.analyze.bisect_case.evaluation import WrittenKernel
from tracing.analyze.bisect_case.stages import INDUCTOR
from tracing.cli.app import err, out, silent
from tracing.cli.narrow.bisect.case_builds import CaseBuilds
from tracing.cli.narrow.bisect.case_passes import PassesOfKernel, passes_of_kernel
from tracing.report.bisect import bisect_case as report
from tracing.report.bisect.bisect_case_json import case_search_json
from tracing.report.text import Line


def search_case(
    name: str, target: str, seed: int, times: int, seconds: float, runs: Path, *, fresh: bool, as_json: bool
) -> int:
    """Search, print, and return the exit status: 0 if the case is right, 1 if a step is accused, 2 otherwise.

    times   -- compiles, to measure how often the case goes wrong
    seconds -- time limit of one build
    """
    with err.status("importing torch"):
        from tracing.program.device import Device
        from tracing.program.experiment import Experiment
        from tracing.program.warm_compiler import load_and_warm_up

        device = Device(target)
        experiment = Experiment(load_and_warm_up(device, name), device, seed)
        words = [name, target, str(seed)]
        builds = CaseBuilds(experiment, words, runs, seconds)
    if fresh:
        builds.forget()
    search = _CaseSearch(builds, times, words, None if device.virtual else runs)
    if not as_json:
        return search.status()
    with silent():
        status = search.status()
    answer = {"case": experiment.case.name, "status": status}
    effort = {"built": builds.built, "known": builds.known}
    passes = {"passes": search.passes.answer if search.passes else None}
    searched = case_search_json(search.events, search.sources)
    print(json.dumps({**answer, **searched, **passes, **effort}, indent=2))
    return status


class _CaseSearch:
    # one search, and how its events are printed

    def __init__(self, builds: CaseBuilds, times: int, words: list[str], runs: Path | None) -> None:
        # runs -- where the accused kernel is recorded; None: on the virtual GPU, for nothing
        self.builds, self._words, self._runs = builds, words, runs
        self.passes: PassesOfKernel | None = None
        self.events: list[CaseEvent] = []
        self.sources: dict[str, str] = {}
        self._search = CaseSearch(builds, times, self._tried, cpp=runs is None)
        self._trying = ""
        self._status = err.status("")

    def status(self) -> int:
        """Search, print the events, and return the exit status."""
        for event in self._search.events():
            self.events.append(event)
            with ExitStack() as stack:
                self._status.stop()
                if isinstance(event, Building):
                    self._trying = event.what
                    self._show()
                    continue
                stack.callback(self._show)
                _print(self._lines(event))
        self._status.stop()
        known = f", {self.builds.known} known from earlier searches" if self.builds.known else ""
        err.print(Text(f"{self.builds.built} built{known}", "dim"))
        last = self.events[-1]
        if isinstance(last, CaseTried):
            return 1 if last.symptom.kind == "eager is off" else 0
        return 1 if isinstance(last, CaseAnswer) and last.decided else 2

    def _tried(self) -> None:
        self._show()

    def _show(self) -> None:
        self._status.update(f"{self._trying} ({self.builds.built + self.builds.known} builds)")
        self._status.start()

    def _lines(self, event: CaseEvent) -> Iterator[Line]:
        match event:
            case CaseTried():
                yield from report.case_tried_text(event)
            case StageTried():
                yield report.stage_tried_text(event)
            case StageBlamed():
                yield from report.stage_blamed_text(event)
            case Planned():
                yield report.planned_text(event)
            case PartTried():
                yield report.part_tried_text(event)
            case Culprit():
                yield from report.culprit_text(event)
            case PartUndecided():
                yield from report.undecided_text(event)
            case TogetherBlamed():
                yield from report.together_text(event)
            case OtherCode():
                yield from report.other_code_text(event)
            case CaseAnswer():
                self._write(event.kernels)
                yield from report.answer_text(event, self.sources)
                if event.stage.name == INDUCTOR and event.symptom.kind == "differs":
                    yield from self._passes(event)

    def _passes(self, event: CaseAnswer) -> Iterator[Line]:
        if self._runs is None or not event.triton:
            yield from report.no_pass_text(self._words[0], triton=event.triton)
        elif event.kernels:
            name = event.kernels[0].name
            with err.status(f"searching the passes of {name}"):
                self.passes = passes_of_kernel(self._words, name, self._runs)
            one = self.passes
            because = "" if one.answer else one.failure
            yield from report.passes_text(name, one.commands, one.accused, because)

    def _write(self, kernels: Sequence[WrittenKernel]) -> None:
        self.builds.folder.mkdir(parents=True, exist_ok=True)
        for kernel in kernels:
            path = self.builds.folder / f"{kernel.name}.py"
            path.write_text(kernel.source)
            self.sources[kernel.name] = str(path)


def _print(lines: Iterable[Line]) -> None:
    for line in lines:
        out.print(line)
