"""Count how often repeated runs differ, and in which kernels, with a confidence interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracing.analyze.compare.cause_kinds import OperatorCause, Uninitialised
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchDiffers,
    OutputDiffers,
    kind_of,
)
from tracing.model import Perturbed

_Z = 1.96  # standard deviations of a normal distribution: 95% confidence


@dataclass(frozen=True, slots=True)
class Repeat:
    """One repeated run, compared with the first."""

    index: int
    found: tuple[Divergence, ...]
    results: tuple[str, ...]  # outputs and gradients of the case whose bits differ
    pairs: int
    perturbed: tuple[Perturbed, ...] = ()
    failure: str = ""  # its outcome, if it differs from that of the first run

    @property
    def differs(self) -> bool:
        """True if any compared value differs."""
        return bool(self.found or self.results or self.failure)

    @property
    def reads_unwritten(self) -> bool:
        """True if the first divergence is of memory that nothing wrote: it depends on what was there."""
        first = self.found[0] if self.found else None
        return isinstance(first, InputDiffers) and isinstance(first.cause, Uninitialised)

    @property
    def is_of_a_kernel(self) -> bool:
        """True if the first divergence is of a kernel that is not deterministic."""
        first = self.found[0] if self.found else None
        return isinstance(first, OutputDiffers) and not first.doubt

    @property
    def is_of_a_generator(self) -> bool:
        """True if the first divergence is of numbers drawn from a generator that the program passes."""
        cause = self.found[0].cause if self.found and isinstance(self.found[0], InputDiffers) else None
        return (
            isinstance(cause, OperatorCause)
            and cause.draws_others
            and "generator=generator" in cause.arguments[0]
        )


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate of repetitions that differed."""

    differing: int
    runs: int
    what: str = "runs"

    def interval(self) -> tuple[float, float]:
        """The Wilson score interval of the probability that a run differs, at 95% confidence.

        Unlike p ± z·sqrt(p(1-p)/n), it has a width if no run or every run differed.

        Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", 1927.
        """
        n, p, z = self.runs, self.differing / self.runs, _Z
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        low, high = self.interval()
        of = f"{self.differing} of {self.runs} {self.what}"
        return f"{of} (between {low:.0%} and {high:.0%} at 95% confidence)"


@dataclass(frozen=True, slots=True)
class DifferenceTable:
    """The kernels and results that differed, by run, and the perturbations of each run."""

    runs: Sequence[int]
    kernels: Mapping[str, Mapping[int, str]]  # the kind of its first divergence in a run
    results: Mapping[str, Mapping[int, str]]  # outputs and gradients; the case itself where it failed
    perturbed: Mapping[str, Mapping[int, str]]  # what was changed on purpose, and how
    unperturbed: Mapping[str, str]  # perturbations that were not possible, and why


def unasked(divergences: Iterable[Divergence], perturbed: Sequence[Perturbed]) -> tuple[Divergence, ...]:
    """Divergences, except launches whose configuration `--perturb` changed, if nothing else explains results.

    Results that differ count as those of another configuration only if the inputs of the launch are equal.
    """
    asked = any(one.what == "winners" and one.how for one in perturbed)
    return tuple(
        one
        for one in divergences
        if not (asked and isinstance(one, LaunchDiffers) and one.tuned and (one.inputs or not one.outputs))
    )


def rate(repeats: Sequence[Repeat]) -> Rate:
    """The rate of repeated runs that differ from the first."""
    return Rate(sum(one.differs for one in repeats), len(repeats))


def table(repeats: Sequence[Repeat]) -> DifferenceTable:
    """Kernel × run, and below it result × run and perturbation × run."""
    kernels: dict[str, dict[int, str]] = {}
    results: dict[str, dict[int, str]] = {}
    perturbed: dict[str, dict[int, str]] = {}
    unperturbed: dict[str, str] = {}
    for repeat in repeats:
        for divergence in repeat.found:
            kernels.setdefault(divergence.pair.launch.kernel_name, {}).setdefault(
                repeat.index, kind_of(divergence)
            )
        for name in repeat.results:
            results.setdefault(name, {})[repeat.index] = "differs"
        if repeat.failure:
            results.setdefault("the run", {})[repeat.index] = "failed"
        for one in repeat.perturbed:
            if one.how:
                perturbed.setdefault(one.what, {})[repeat.index] = one.how
            else:
                unperturbed[one.what] = one.why_not
    return DifferenceTable([one.index for one in repeats], kernels, results, perturbed, unperturbed)
