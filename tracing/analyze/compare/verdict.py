"""The complete comparison of two runs: start, launches, results and outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tracing.analyze.compare.cause_kinds import Cause, UnknownCause
from tracing.analyze.compare.causes.cause_answer import Follows
from tracing.analyze.compare.divergence_kinds import Divergence, OutputDiffers
from tracing.analyze.compare.first_divergence import UNREAD_RESULTS, Comparison
from tracing.analyze.compare.unread_operators import unread_operators
from tracing.analyze.compare.unwritten_memory import dependents, unfollowed
from tracing.analyze.runs.coverage import coverage
from tracing.analyze.runs.recorded_steps import not_covered_steps
from tracing.analyze.runs.results import (
    ResultDiffers,
    differing_outcomes,
    differing_results,
    differing_start,
    failed_alike,
    results,
    uncomparable_results,
)
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class ResultCause:
    """The known cause of different results although no launch differs."""

    result: ResultDiffers
    cause: Cause | None


@dataclass(slots=True)
class ComparisonVerdict:
    """The comparison of two runs: iteration yields divergences; the other fields are complete after it."""

    comparison: Comparison
    start: tuple[ResultDiffers, ...]  # inputs, parameters, random state
    outcomes: tuple[ResultDiffers, ...]
    results: tuple[ResultDiffers, ...]
    found: int = 0  # launches that differ
    decided: int = 0  # of these, those whose code is not lost
    why: ResultCause | None = None  # the cause if results differ and no launch does
    equal_results: int = 0
    dependents: tuple[str, ...] = ()  # what depends on memory that nothing wrote and that differs
    _runs: tuple[Run, ...] = field(default=())

    @classmethod
    def of(cls, a: Run, b: Run, window: int) -> ComparisonVerdict:
        """Compare two runs; launches that only one run has are recognised within `window` launches."""
        comparison = Comparison(a, b, window)
        notes, both = comparison.notes, coverage(a.info, b.info)
        if both.left_out:
            notes.unrecorded = "only some launches were recorded"
            notes.selected = both.left_out
        if not_covered_steps(a) or not_covered_steps(b):
            notes.unrecorded = "only some steps were recorded"
        if a.info.selection != b.info.selection:
            notes.covers = both.covers
        verdict = cls(comparison, (), differing_outcomes(a, b), (), _runs=(a, b))
        with notes.damage(UNREAD_RESULTS):
            verdict.start = differing_start(a, b)
            verdict.results = differing_results(a, b)
            for one in (*uncomparable_results(a, b), *failed_alike(a, b)):
                notes.add(one)
        notes.started = any(one.tensor for one in verdict.start)
        if verdict.start:
            notes.unknown = f"the case's own {verdict.start[0].title} differs from the start"
        return verdict

    def __iter__(self) -> Iterator[Divergence]:
        for divergence in self.comparison:
            self.found += 1
            self.decided += not (isinstance(divergence, OutputDiffers) and divergence.doubt == "code")
            yield divergence
        with self.comparison.notes.damage(UNREAD_RESULTS):
            a, b = (results(run) for run in self._runs)
            self.equal_results = len(a.keys() & b.keys()) - len(self.results)
        self._explain_unwritten_memory()
        if not (self.found or self.results or self.start or self.outcomes):
            self._compare_operators()
        if self.results and not self.found and self.why is None:
            causes = ((one, self.comparison.cause_of(one)) for one in self.results)
            known = [ResultCause(one, why) for one, why in causes if why and not isinstance(why, Follows)]
            self.why = min(known, key=_certainty, default=ResultCause(self.results[0], None))

    def _compare_operators(self) -> None:
        comparison = self.comparison
        notes, a, b = comparison.notes, *self._runs
        if notes.unrecorded or notes.covers:
            return  # the runs have different calls
        for rank, processes in comparison.processes:
            if any(one == rank for one, _ in (*results(a), *results(b))):
                continue
            if without := [run.name for run in self._runs if run.info.operators == "none"]:
                self._without_operators(without)
                return
            with notes.damage("operators are not compared"):
                one = unread_operators((a, b), rank, processes)
                if one.doubt:
                    notes.add(one.doubt)
                notes.left_out.update(dict.fromkeys(one.left_out))
                if one.difference is not None:
                    self.why = ResultCause(*one.difference)
                    self.results = (self.why.result,)
                    return

    def _without_operators(self, names: Sequence[str]) -> None:
        # names -- of the runs that were recorded with `--operators none`
        notes, what = self.comparison.notes, "operators outside of Triton, which"
        if len(names) == 1:
            notes.add(f"{what} {names[0]} did not record")
        else:
            notes.left_out[f"{what} neither run recorded; `--operators digests` records them"] = None

    def _explain_unwritten_memory(self) -> None:
        notes = self.comparison.notes
        for one in notes.unwritten_memory:
            if not one.unwritten:
                notes.add(
                    f"at most {one} differ; the launch does not access them, something may have written"
                )
        if notes.unwritten_memory:
            ranks = dict.fromkeys(one.rank for one in notes.unwritten_memory)
            known = (one for rank in ranks for run in self._runs for one in dependents(run, rank))
            self.dependents = tuple(dict.fromkeys(known))
        if notes.unwritten_memory and not self.dependents:
            for why in (why for run in self._runs for why in unfollowed(run)):
                notes.add(why)

    @property
    def status(self) -> int:
        """Exit status as of diff(1): 0 equal, 1 different, 2 compared in part."""
        if self.decided or self.results or self.start or self.outcomes or self.dependents:
            return 1
        notes = self.comparison.notes
        compared = notes.complete and not notes.undigested and (notes.pairs or self.equal_results)
        return 0 if compared and not self.found else 2


def _certainty(result: ResultCause) -> bool:
    return isinstance(result.cause, UnknownCause) or not getattr(result.cause, "proven", True)
