"""The answer to "where do two runs differ?": start, launches, results and endings together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from tracing.analyze.compare.comparison import Comparison
from tracing.analyze.compare.divergence import Divergence
from tracing.analyze.coverage import coverage
from tracing.analyze.results import (
    ResultDiffers,
    differing_outcomes,
    differing_results,
    differing_start,
    failed_alike,
    results,
    uncomparable_results,
)
from tracing.model import OperatorCall, OperatorSignature
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class OperatorDiffers:
    """The first operator outside of Triton that two runs call differently."""

    a: str  # name and arguments; empty: run a has ended
    b: str


@dataclass(slots=True)
class Verdict:
    """Two runs being compared: iterate over the launches that differ; the rest is complete afterwards."""

    comparison: Comparison
    start: tuple[ResultDiffers, ...]  # inputs, parameters, random state
    outcomes: tuple[ResultDiffers, ...]
    results: tuple[ResultDiffers, ...]
    found: int = 0  # launches that differ
    operator: OperatorDiffers | None = None  # where results differ and no launch does
    equal_results: int = 0
    _runs: tuple[Run, ...] = field(default=())

    @classmethod
    def of(cls, a: Run, b: Run, window: int) -> Verdict:
        """Compare two runs, with launches that only one run has looked for `window` launches ahead."""
        comparison = Comparison(a, b, window)
        notes, both = comparison.notes, coverage(a.info, b.info)
        if both.left_out:
            notes.unrecorded = "only some launches were recorded"
            notes.selected = both.left_out
        if a.info.selection != b.info.selection:
            notes.covers = both.covers
        start = differing_start(a, b)
        if start:
            notes.unknown = f"the case's own {start[0].title} differs from the start"
        for one in (*uncomparable_results(a, b), *failed_alike(a, b)):
            notes.add(one)
        return cls(comparison, start, differing_outcomes(a, b), differing_results(a, b), _runs=(a, b))

    def __iter__(self) -> Iterator[Divergence]:
        for found in self.comparison:
            self.found += 1
            yield found
        suspect = self.comparison.suspect(bool(self.results), bool(results(self._runs[0])))
        if not self.found and suspect is not None:
            self.found += 1
            yield suspect
        a, b = (results(run) for run in self._runs)
        self.equal_results = len(a.keys() & b.keys()) - len(self.results)
        if self.results and not self.found:
            self.operator = first_operator(*self._runs)

    @property
    def status(self) -> int:
        """Exit status as of diff(1): 0 equal, 1 different, 2 compared in part."""
        if self.found or self.results or self.start or self.outcomes:
            return 1
        return 0 if self.comparison.notes.complete else 2


def first_operator(a: Run, b: Run) -> OperatorDiffers | None:
    """The first operator that two runs call by another name or with other arguments, process by process."""
    for processes in zip(a.processes(OperatorCall), b.processes(OperatorCall), strict=False):
        calls = (_operators(run, process) for run, process in zip((a, b), processes, strict=True))
        for one, other in zip_longest(*calls, fillvalue=""):
            if one != other:
                return OperatorDiffers(one, other)
    return None


def _operators(run: Run, process: str) -> Iterator[str]:
    known = {one.id: one for one in run.view(process, OperatorSignature, OperatorSignature)}
    for call in run.view(process, OperatorCall, OperatorCall):
        if one := known.get(call.signature):
            yield f"{one.name}({one.arguments})"
