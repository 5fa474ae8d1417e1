"""Decide whether a result is off, or within rounding of exact arithmetic.

The distance of an element from its exact value is measured in roundings. One rounding is the spread of runs
with random roundings, plus the distance to the next number of its dtype, plus, because elements may happen to
be small, a fraction of both over the whole tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch

from tracing.numerics.reference import Expected
from tracing.numerics.rounding import real, units

Verdict = Literal["within rounding", "compiled is off", "eager is off", "both are off", "no reference"]

FARTHEST = 64.0  # greatest distance of one element of a right result, in roundings; of 16 bits and less:
FARTHEST_NARROW = 24.0
TYPICAL = 8.0  # limit for the mean over a tensor
_SHARE = 1 / 16  # of the root mean square of a tensor's noise, which each element may have
_LIBRARY = 16.0  # factor for library functions such as erf, imprecise where they are nearly constant
_ALIKE = 4.0  # factor of eager's distance that is accepted: covers unknown noise, as of TF32


@dataclass(frozen=True, slots=True)
class Distance:
    """The distance of a tensor from the exact one, in roundings."""

    farthest: float
    mean: float
    index: tuple[int, ...]  # of the element that is farthest
    value: float | complex
    elements: int  # elements whose distance rounding does not explain
    limit: float  # the distance that rounding explains

    @property
    def off(self) -> bool:
        """True if rounding does not explain it."""
        return self.farthest > self.limit or self.mean > TYPICAL

    @property
    def far_off(self) -> bool:
        """True if an imprecise library function does not explain it either."""
        return self.farthest > _LIBRARY * self.limit or self.mean > _LIBRARY * TYPICAL

    def beyond(self, other: Distance) -> bool:
        """True if this distance is much larger than another one."""
        return self.farthest > _ALIKE * other.farthest or self.mean > _ALIKE * other.mean


@dataclass(frozen=True, slots=True)
class Judged:
    """One result of a compiled program, compared with that of eager."""

    verdict: Verdict
    compiled: Distance
    eager: Distance
    exact: float | complex  # of the element at which compiled is farthest
    missing: tuple[str, ...] = ()
    other_numbers: bool = False  # compiled draws other random numbers; judged is a compile that draws eager's
    still_off: bool = False  # eager draws random numbers, and a compile that draws the same is off

    def despite_equal_numbers(self) -> Judged:
        """The verdict for a program that is off even where it draws eager's random numbers."""
        return replace(self, still_off=True)

    def with_other_numbers(self) -> Judged:
        """The verdict for a program that draws other random numbers than eager."""
        return replace(self, other_numbers=True)


def judge(
    compiled: torch.Tensor, eager: torch.Tensor, expected: Expected, *, narrow: float = FARTHEST_NARROW
) -> Judged:
    """Compare a result with exact arithmetic.

    compiled, eager -- [*] of one shape and dtype, as `expected`
    narrow          -- roundings that one element of 16 bits or less may be away

    Memory: some six float64 copies of the tensor.
    """
    ours, theirs = (_distance(one, expected, narrow) for one in (compiled, eager))
    exact = expected.exact[ours.index].item() if expected.exact.numel() else 0.0
    return Judged(_verdict(ours, theirs, expected), ours, theirs, exact, expected.missing)


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


def _distance(actual: torch.Tensor, expected: Expected, narrow: float) -> Distance:
    if actual.numel() == 0:
        return Distance(0.0, 0.0, (), 0.0, 0, FARTHEST)
    limit = narrow if actual.dtype.itemsize <= 2 and actual.is_floating_point() else FARTHEST
    roundings = _roundings(actual, expected)
    flat = int(roundings.argmax())
    index = (
        tuple(int(one) for one in torch.unravel_index(torch.tensor(flat), actual.shape))
        if actual.dim()
        else ()
    )
    return Distance(
        float(roundings.flatten()[flat]), float(roundings.mean()), index, actual[index].item(),
        int((roundings > limit).sum()), limit,
    )  # fmt: skip


def _roundings(actual: torch.Tensor, expected: Expected) -> torch.Tensor:
    # [*] float64
    exact = expected.exact
    if not (exact.is_floating_point() or exact.is_complex()):
        wrong = (actual != exact) & (expected.spread == 0)
        return wrong.to(torch.float64) * (2 * FARTHEST)
    values = actual.to(exact.dtype)
    apart = (values - exact).abs().to(torch.float64) / rounding(expected, actual.dtype)
    return torch.where(_alike(values, exact, actual.dtype), 0.0, apart).nan_to_num(nan=torch.inf)


def rounding(expected: Expected, dtype: torch.dtype) -> torch.Tensor:
    """The effect of one rounding on each element of a result of that dtype: [*] float64, as `exact`."""
    noise = expected.spread + units(expected.exact.abs().to(torch.float64), real(dtype))
    finite = noise[torch.isfinite(noise)]
    common = float((finite * finite).mean().sqrt()) if finite.numel() else 0.0
    return noise + _SHARE * common


def _alike(values: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    # equal, both NaN, or both too large for the dtype
    if exact.is_complex():
        return (values == exact) | (values.isnan() & exact.isnan())
    largest = torch.finfo(dtype).max
    overflown = values.isinf() & (exact.abs() > largest) & (values.sign() == exact.sign())
    return (values == exact) | (values.isnan() & exact.isnan()) | overflown
