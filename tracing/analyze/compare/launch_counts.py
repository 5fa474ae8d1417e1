"""Count the launches of each kernel: does one of two processes lack launches that the other one makes?"""

from __future__ import annotations

from collections import Counter

from tracing.analyze.compare.common_steps import CommonSteps
from tracing.analyze.compare.one_sided_launches import RunIndex
from tracing.analyze.compare.timeline.timeline import Covers
from tracing.analyze.runs.outcomes import ending
from tracing.errors import Problem
from tracing.model import LaunchLine
from tracing.store import Run, rank_of


class LaunchCounts:
    """The compared launches of one process of each run, by the name of the kernel."""

    def __init__(
        self,
        runs: tuple[Run, Run],
        processes: tuple[str, str],
        covers: Covers | None,
        steps: CommonSteps | None,
    ) -> None:
        """covers, steps -- the launches that are compared; None: all"""
        self._runs, self._processes, self._covers, self._steps = runs, processes, covers, steps
        self._counts: tuple[Counter[str], Counter[str]] | None = None

    def are_equal(self, kernel: str) -> bool:
        """False if one process launches a kernel more often; True also if a run does not show its end.

        Reads the launches of both processes once, 1 µs each.
        """
        if self._counts is None:
            self._counts = self._of_both()
        a, b = self._counts
        return a[kernel] == b[kernel]

    def _of_both(self) -> tuple[Counter[str], Counter[str]]:
        sides = zip(self._runs, self._processes, strict=True)
        try:
            if any(ending(run, rank_of(process)) for run, process in sides):
                return Counter(), Counter()
            return self._of(0), self._of(1)
        except Problem:  # damage, which the comparison reports
            return Counter(), Counter()

    def _of(self, side: RunIndex) -> Counter[str]:
        run, process = self._runs[side], self._processes[side]
        known, rank, counts = run.signatures(process), rank_of(process), Counter[str]()
        for line in run.view(process, LaunchLine, LaunchLine):
            kernel, signature = known[line.signature]
            chosen = self._steps is None or self._steps.covers(side, line.index)
            if chosen and (
                self._covers is None or self._covers(line.index, kernel.name, signature.phase, rank)
            ):
                counts[kernel.name] += 1
        return counts
