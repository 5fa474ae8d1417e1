"""Decide for each tensor whose bits differ which is off, compiled or eager.

If all bits are equal, nothing is computed. A result that depends on random numbers is judged by another
compile that draws eager's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from tracing.errors import message
from tracing.numerics.draws import Draw, draws_noted, unlike
from tracing.numerics.one_rounding import rounding
from tracing.numerics.reference import (
    MORE_SAMPLES,
    SAMPLES,
    UNREPEATABLE,
    Expected,
    Results,
    reference,
    repeats,
)
from tracing.numerics.verdict import TYPICAL, Judged, judge, needs_more_runs
from tracing.program.experiment import Experiment
from tracing.program.state import stepped, steps_as_compiled
from tracing.program.structure import Facts
from tracing.upstream.inductor.config import settings_changed
from tracing.upstream.torch.dynamo import forget_compiled


class Referee:
    """Judges the results of one workload."""

    def __init__(
        self, eager: Callable[[], Results], compiled: Callable[[], Results], progress: Callable[[str], None]
    ) -> None:
        """Both run the workload from its seed and return its results by name.

        compiled -- compiles it so that it draws the random numbers of eager
        """
        self._eager, self._compiled, self._progress = eager, compiled, progress
        self._expected: Mapping[str, Expected] | None = None
        self._as_compiled: Mapping[str, Expected] | None = None
        self._finer: Mapping[str, Expected] | None = None  # of more runs
        self._draws: Sequence[Draw] = ()  # of the compile with eager's numbers
        self._other: Results | None = None
        self._unlike: str | None = None  # how its draws differ from eager's; None: not compared yet
        self.undeclared: list[str] = []  # what operators of the program do against their schemas
        self._steps = False  # an optimizer makes a step
        self._fused = False  # attention is not taken apart: fused, it draws other random numbers
        self.failure = ""  # why there is no reference at all

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        compiler: Callable[..., Any] | None,
        progress: Callable[[str], None],
    ) -> Referee:
        """That of a case and one compiler of it, as `Experiment.results` takes it."""

        def eager() -> Facts:
            return experiment.results(experiment.workload(), None)

        def compiled() -> Facts:
            forget_compiled()
            with settings_changed({"fallback_random": True}):
                return experiment.results(experiment.workload(), compiler)

        return cls(eager, compiled, progress)

    def judge(self, name: str, compiled: torch.Tensor, eager: torch.Tensor) -> Judged | None:
        """The verdict on one result; None: there is no reference for it.

        compiled, eager -- [*] of one shape and dtype
        """
        expected = self._reference().get(name)
        if expected is None or expected.exact.shape != compiled.shape:
            return None
        if expected.own is not None and not repeats(eager, expected.own):
            if expected.drawn and not self._fused:
                self._fused = True
                self._expected = self._finer = self._as_compiled = None
                self.undeclared.clear()
                return self.judge(name, compiled, eager)
            expected = replace(expected, missing=tuple({*expected.missing, UNREPEATABLE}))
        judged, expected = self._judged(name, compiled, eager, expected)
        if judged.right and not (expected.drawn and judged.verdict == "no reference"):
            return judged
        if expected.drawn:
            other = self._with_eagers_numbers().get(name)
            if isinstance(other, torch.Tensor) and other.shape == compiled.shape:
                second, _ = self._judged(name, other, eager, expected)
                return self._drawn(judged, second, other)
        return (self._with_compiled_steps(name, compiled, eager, expected) if self._steps else None) or judged

    def _judged(
        self, name: str, compiled: torch.Tensor, eager: torch.Tensor, expected: Expected
    ) -> tuple[Judged, Expected]:
        judged = judge(compiled, eager, expected)
        if needs_more_runs(judged, expected):
            expected = self._reference_of_more_runs().get(name, expected)
            judged = judge(compiled, eager, expected)
        return judged, expected

    def _with_compiled_steps(
        self, name: str, compiled: torch.Tensor, eager: torch.Tensor, expected: Expected
    ) -> Judged | None:
        # None: what torch.compile traces for optimizers explains nothing
        other = self._reference_as_compiled().get(name)
        if other is None or other.missing or other.exact.shape != expected.exact.shape:
            return None
        nothing = torch.zeros_like(compiled, dtype=torch.bool)
        apart = (other.exact - expected.exact).abs()
        if not bool((apart <= TYPICAL * rounding(expected, nothing, compiled.dtype)).all()):
            return None  # another result, and not only other roundings
        second = judge(compiled, eager, other)
        return second.with_compiled_steps() if second.verdict == "within rounding" else None

    def prepare(self) -> None:
        """Compute the reference now, so that forks of this process have it."""
        self._reference()

    def draw_with(self, compiled: Callable[[], Results]) -> None:
        """Draw eager's random numbers by another compile from now on."""
        self._compiled, self._other, self._unlike = compiled, None, None

    def _reference(self) -> Mapping[str, Expected]:
        if self._expected is None:
            self._progress("some bits are not those of eager: measuring rounding in float64")
            self._ended(0)
            try:
                with stepped() as optimizers:
                    self._expected = reference(
                        self._eager,
                        fused=self._fused,
                        progress=self._ended,
                        undeclared=self.undeclared.append,
                    )
                self._steps = bool(optimizers)
            except Exception as error:  # raised by the program in another precision, or out of memory
                self.failure = f"{type(error).__name__}: {next(iter(message(error).splitlines()), '')}"
                self._expected = {}
        return self._expected

    def _reference_as_compiled(self) -> Mapping[str, Expected]:
        if self._as_compiled is None:
            self._progress("measuring rounding of optimizer steps as torch.compile traces them")
            self._ended(0)
            try:
                with steps_as_compiled():
                    self._as_compiled = reference(self._eager, fused=self._fused, progress=self._ended)
            except Exception:  # an optimizer that does not support it
                self._as_compiled = {}
        return self._as_compiled

    def _reference_of_more_runs(self) -> Mapping[str, Expected]:
        if self._finer is None:
            self._progress("few elements are off: measuring how far rounding moves them, in more runs")
            try:
                self._finer = reference(
                    self._eager,
                    samples=MORE_SAMPLES,
                    fused=self._fused,
                    progress=lambda runs: self._ended(runs, MORE_SAMPLES),
                )
            except Exception as error:  # out of memory
                self._progress(f"more runs are not possible, and few decide: {type(error).__name__}")
                self._finer = {}
        return self._finer

    def _ended(self, runs: int, samples: int = SAMPLES) -> None:
        self._progress(f"in float64: {runs} of {samples + 1} runs")

    def _with_eagers_numbers(self) -> Results:
        if self._other is None:
            self._progress("compiling once more, with the random numbers of eager")
            with draws_noted() as self._draws:
                self._other = self._compiled()
        return self._other

    def _drawn(self, judged: Judged, second: Judged, other: torch.Tensor) -> Judged:
        # judged -- of other random numbers than eager's; second -- of equal ones, for `other`
        if second.verdict == "no reference":
            return second.by_tolerances_of(other, self._unlike_draws())
        if second.verdict != "compiled is off":
            return second.with_other_numbers()
        if judged.verdict == "within rounding":
            return judged
        return second.with_unlike_draws(self._unlike_draws()) if self._unlike_draws() else second

    def _unlike_draws(self) -> str:
        if self._unlike is None:
            with draws_noted() as eager:
                self._eager()
            self._unlike = unlike(self._draws, eager)
        return self._unlike
