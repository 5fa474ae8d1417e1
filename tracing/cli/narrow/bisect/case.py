"""`tracing bisect CASE`: search the compiler from the model down to a kernel, and its passes on a GPU."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from tracing.analyze.bisect_case.case_events import CaseAnswer, CaseTried
from tracing.analyze.bisect_case.stages import EAGER, INDUCTOR, UNCOMPILED
from tracing.cli.app import RUNS, err
from tracing.cli.narrow.bisect.case_builds import CaseBuilds
from tracing.cli.narrow.bisect.case_passes import PassesOfKernel, passes_of_kernel
from tracing.cli.narrow.bisect.step_search import StepSearch
from tracing.model.chips import DEFAULT_TARGET
from tracing.report.bisect import bisect_case as report
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
    passes = _Passes(words, runs, virtual=device.virtual)
    search = StepSearch(builds, times, passes.lines, cpp=device.virtual)
    if as_json:
        return search.printed_json(experiment.case.name, passes.json)
    return search.printed()


class _Passes:
    # the search of the passes of the accused kernel, after that of the case

    def __init__(self, words: list[str], runs: Path, *, virtual: bool) -> None:
        # runs -- where the accused kernel is recorded; on the virtual GPU none is
        self._words, self._runs, self._virtual = words, runs, virtual
        self._below = [] if runs == RUNS else ["--runs", str(runs)]
        self._searched: PassesOfKernel | None = None

    def json(self) -> object:
        return self._searched.answer if self._searched else None

    def lines(self, event: CaseTried | CaseAnswer) -> Iterator[Line]:
        if isinstance(event, CaseTried):
            return
        if event.stage.name == INDUCTOR and event.symptom.kind == "differs":
            yield from self._of_kernel(event)
        if event.stage.name not in (UNCOMPILED, EAGER) and not event.own_kernels:
            name, target, seed = self._words
            options = ["--target", target] * (target != DEFAULT_TARGET) + ["--seed", seed] * (seed != "0")
            words = ["tracing", "minify", name, *options, *self._below]
            yield report.smallest_graph_text(shlex.join(words))

    def _of_kernel(self, event: CaseAnswer) -> Iterator[Line]:
        if self._virtual or not event.triton:
            yield from report.no_pass_text(self._words[0], self._below, triton=event.triton)
        elif event.kernels:
            name = event.kernels[0].name
            with err.status(f"searching the passes of {name}"):
                self._searched = passes_of_kernel(self._words, name, self._runs)
            one = self._searched
            because = "" if one.answer else one.failure
            yield from report.passes_text(name, one.commands, one.accused, because)
