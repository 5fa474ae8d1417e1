"""Decide whether a result is off, or within rounding of exact arithmetic.

The distance of an element from its exact value is measured in roundings, as of `one_rounding`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch

from tracing.numerics.eager_difference import EagerDifference, Far, eager_difference, index_of
from tracing.numerics.one_rounding import common_noise, own_noise, wider, without_overflow
from tracing.numerics.reference import Expected
from tracing.numerics.shadow_storages import is_inexact

Verdict = Literal[
    "within rounding", "compiled is off", "eager is off", "both are off", "not decided", "no reference"
]

# limits of a right result, in roundings
FARTHEST = 64.0  # of one element
FARTHEST_NARROW = 24.0  # of one element of 16 bits or less
_FARTHEST_8_BITS = 4.0  # of 8 bits, to which only the result of a sum is rounded: 24 are a factor of 8
TYPICAL = 8.0  # of the mean over a tensor
TYPICAL_NARROW = 3.0  # of the mean over a tensor of 16 bits or less, of which 8 roundings are 5 %

FEW = 1 / 64  # of the elements of a tensor: more runs may explain them
_LOST = 1 / 2  # of the elements of a tensor: bad luck of rounding leaves no number in fewer
_NO_NUMBER = 1e150  # a spread above it: some samples are infinite or NaN
_LIBRARY = 16.0  # factor for library functions such as erf, imprecise where they are nearly constant
UNKNOWN_NOISE = 4.0  # factor of eager's distance that is accepted: covers unknown noise, as of TF32
_NOTICED = 1 / 12  # of the limit: a right result that is farther away may be called less precise
_FARTHER = 2.0  # so many times eager's mean distance is that of a result called less precise


@dataclass(frozen=True, slots=True)
class Distance:
    """The distance of a tensor from the exact one, in roundings."""

    farthest: float
    mean: float
    index: tuple[int, ...]  # of the element that is farthest
    value: float | complex
    elements: int  # elements whose distance rounding does not explain
    limit: float  # the distance that rounding explains
    typical: float = TYPICAL  # the mean that rounding explains

    @property
    def off(self) -> bool:
        """True if rounding does not explain it."""
        return self.farthest > self.limit or self.mean > self.typical

    @property
    def far_off(self) -> bool:
        """True if an imprecise library function does not explain it either."""
        return self.farthest > _LIBRARY * self.limit or self.mean > _LIBRARY * self.typical

    def beyond(self, other: Distance) -> bool:
        """True if this distance is much larger than another one."""
        return self.farthest > UNKNOWN_NOISE * other.farthest or self.mean > UNKNOWN_NOISE * other.mean

    def less_precise(self, other: Distance) -> bool:
        """True if this distance is noticeable, and much larger than another one also on average."""
        noticed = self.farthest > max(_NOTICED * self.limit, UNKNOWN_NOISE * other.farthest)
        return noticed and self.mean > _FARTHER * other.mean


@dataclass(frozen=True, slots=True)
class Judged:
    """One result of a compiled program, compared with that of eager."""

    verdict: Verdict
    compiled: Distance
    eager: Distance
    exact: float | complex  # of the element at which compiled is farthest
    missing: tuple[str, ...] = ()
    other_numbers: bool = False  # compiled draws other random numbers; judged is a compile that draws eager's
    as_compiled: bool = False  # judged against optimizer steps as torch.compile traces them
    beyond: int = 0  # integers that rounding decides, and that no run with other roundings gives
    unlike_draws: str = ""  # how the draws of each compile differ from eager's
    instead: torch.Tensor | None = None  # [*] to be compared by tolerances: it draws eager's random numbers
    # elements within the rounding of the tensor's larger elements, but not within their own
    undecided: int = 0
    apart: EagerDifference | None = None  # if exact arithmetic may not decide between compiled and eager

    @property
    def right(self) -> bool:
        """True if nothing has to be explained: compiled is neither off, nor undecided, nor less precise."""
        return self.verdict not in ("compiled is off", "not decided") and not self.less_precise

    @property
    def less_precise(self) -> bool:
        """True if compiled is within rounding, and eager is much nearer to the exact result."""
        return (
            self.verdict == "within rounding"
            and not self.missing  # else eager's own values stand for exact ones
            and not self.as_compiled
            and self.compiled.less_precise(self.eager)
        )

    def with_compiled_steps(self) -> Judged:
        """The verdict for a program whose optimizer steps are less precise if torch.compile traces them."""
        return replace(self, as_compiled=True)

    def with_other_numbers(self) -> Judged:
        """The verdict for a program that draws other random numbers than eager."""
        return replace(self, other_numbers=True)

    def with_unlike_draws(self, how: str) -> Judged:
        """The verdict for a program of which no compile draws eager's random numbers."""
        return replace(self, verdict="not decided", unlike_draws=how)

    def by_tolerances_of(self, other: torch.Tensor, unlike: str) -> Judged:
        """The verdict for a result without a reference that draws other random numbers than eager.

        other  -- [*] of a compile that draws eager's
        unlike -- how its draws differ from eager's; empty: they do not
        """
        return replace(self, instead=other, unlike_draws=unlike)


def judge(
    compiled: torch.Tensor, eager: torch.Tensor, expected: Expected, *, narrow: float = FARTHEST_NARROW
) -> Judged:
    """Compare a result with exact arithmetic.

    compiled, eager -- [*] of one shape and dtype, as `expected`
    narrow          -- roundings that one element of 16 bits or less may be away

    Memory: some six float64 copies of the tensor.
    """
    differing = (compiled != eager) & ~(compiled.isnan() & eager.isnan())
    noise = without_overflow(own_noise(expected, compiled.dtype), compiled, eager, expected)
    usual = noise + common_noise(noise, expected, differing)
    results = _Results(compiled, eager, expected, narrow)
    far = results.roundings(usual)
    verdict, ours, theirs = results.decided(far)
    exact = expected.exact[ours.index].item() if expected.exact.numel() else 0.0
    judged = Judged(verdict, ours, theirs, exact, expected.missing)
    if verdict == "within rounding" and (beyond := _beyond(compiled, expected)):
        return replace(judged, verdict="not decided", beyond=beyond)
    if verdict == "within rounding":
        bare, distance, _ = results.decided(results.roundings(noise))
        undecided = distance.elements if bare == "compiled is off" else 0
        if not (ours.off and undecided):
            return replace(judged, undecided=undecided)
        apart = eager_difference(compiled, eager, expected.exact, far, limit=ours.limit)
        return replace(judged, verdict="not decided", apart=apart)
    if verdict == "compiled is off" and results.lost_by_rounding(far[0], ours.limit):
        apart = eager_difference(compiled, eager, expected.exact, far, limit=ours.limit)
        return replace(judged, verdict="not decided", apart=apart)
    doubted = results.only_eager_is_finite() or results.off_where_eager_overflows(far[0], ours.limit)
    if verdict != "both are off" and not (verdict == "eager is off" and doubted):
        return judged
    apart = eager_difference(compiled, eager, expected.exact, far, limit=ours.limit)
    return replace(judged, verdict="not decided" if apart.decides_nothing else verdict, apart=apart)


@dataclass(frozen=True, slots=True)
class _Results:
    compiled: torch.Tensor
    eager: torch.Tensor
    expected: Expected
    narrow: float

    def roundings(self, rounding: torch.Tensor) -> Far:
        # of each element of both
        ours, theirs = (_roundings(one, self.expected, rounding) for one in (self.compiled, self.eager))
        return ours, theirs

    def decided(self, far: Far) -> tuple[Verdict, Distance, Distance]:
        verdict = self._compared(far)
        lost = far[1].isinf()
        if verdict[0] in ("eager is off", "both are off") and bool(lost.any()):
            # eager overflows there, or the reference is NaN: that acquits no other element
            others = self._compared((far[0].masked_fill(lost, 0), far[1].masked_fill(lost, 0)))
            return others if others[0] == "compiled is off" else verdict
        return verdict

    def only_eager_is_finite(self) -> bool:
        """True if an element is a number in eager only: exact arithmetic that has none acquits nothing."""
        others = wider(self.compiled).isfinite() | self.expected.exact.isfinite()
        return bool((wider(self.eager).isfinite() & ~others).any())

    def lost_by_rounding(self, far: torch.Tensor, limit: float) -> bool:
        """True if in all elements that are off rounding decides whether there is a number, and it does."""
        if not is_inexact(self.expected.exact):
            return False
        off = far > limit
        numbers = wider(self.compiled).isfinite() & self.expected.exact.isfinite()
        explained = ~numbers & (self.expected.spread > _NO_NUMBER)
        return 0 < int(off.sum()) <= _LOST * off.numel() and not bool((off & ~explained).any())

    def off_where_eager_overflows(self, far: torch.Tensor, limit: float) -> bool:
        """True if an element is infinite in eager, and a number far from the exact one in compiled."""
        overflown = wider(self.eager).isinf() & wider(self.compiled).isfinite()
        return bool(((far > limit) & overflown).any())

    def _compared(self, far: Far) -> tuple[Verdict, Distance, Distance]:
        ours = _distance(self.compiled, far[0], self.narrow)
        theirs = _distance(self.eager, far[1], self.narrow)
        return _verdict(ours, theirs, self.expected), ours, theirs


def _verdict(compiled: Distance, eager: Distance, expected: Expected) -> Verdict:
    if not (compiled.off or eager.off):
        return "within rounding"
    if expected.missing:
        return "no reference"
    if compiled.off and compiled.beyond(eager):
        return "compiled is off"
    if eager.far_off and eager.beyond(compiled):
        return "eager is off"
    return "both are off" if compiled.off and eager.off else "within rounding"


def _distance(actual: torch.Tensor, roundings: torch.Tensor, narrow: float) -> Distance:
    if actual.numel() == 0:
        return Distance(0.0, 0.0, (), 0.0, 0, FARTHEST)
    floating, size = actual.is_floating_point(), actual.dtype.itemsize
    limit = narrow if floating and size <= 2 else FARTHEST
    typical = TYPICAL_NARROW if floating and size <= 2 else TYPICAL
    limit = min(limit, _FARTHEST_8_BITS) if floating and size == 1 else limit
    flat = int(roundings.argmax())
    index = index_of(flat, actual.shape)
    return Distance(
        float(roundings.flatten()[flat]), float(roundings.mean()), index, actual[index].item(),
        int((roundings > limit).sum()), limit, typical,
    )  # fmt: skip


def _roundings(actual: torch.Tensor, expected: Expected, rounding: torch.Tensor) -> torch.Tensor:
    # [*] float64
    exact = expected.exact
    if not is_inexact(exact):
        wrong = (actual != exact) & (expected.spread == 0)
        return wrong.to(torch.float64) * (2 * FARTHEST)
    values = actual.to(exact.dtype)
    apart = (values - exact).abs().to(torch.float64) / rounding
    return torch.where(_alike(values, exact, actual.dtype), 0.0, apart).nan_to_num(
        nan=torch.inf, posinf=torch.inf
    )


def needs_more_runs(judged: Judged, expected: Expected) -> bool:
    """True if more runs with random roundings may explain why compiled is off.

    Few runs miss what rounding moves rarely, as a gradient's sign, which decides a step of Adam.
    """
    if judged.beyond:
        return True
    if judged.verdict != "compiled is off":
        return False
    elements, of = judged.compiled.elements, expected.exact.numel()
    few = elements <= FEW * of or elements == 1 < of
    return few or (is_inexact(expected.exact) and bool((expected.spread > _NO_NUMBER).any()))


def _beyond(compiled: torch.Tensor, expected: Expected) -> int:
    # as an index out of range, where eager sorts equal values
    if expected.extremes is None or not bool(expected.spread.any()):
        return 0
    numbers, (least, largest) = compiled.to(torch.int64), expected.extremes
    return int(((numbers < least) | (numbers > largest)).sum())


def _alike(values: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    # equal, both NaN, or both too large for the dtype
    if exact.is_complex():
        return (values == exact) | (values.isnan() & exact.isnan())
    largest = torch.finfo(dtype).max
    overflown = values.isinf() & (exact.abs() > largest) & (values.sign() == exact.sign())
    return (values == exact) | (values.isnan() & exact.isnan()) | overflown
