"""The effect of one rounding on each element of a result: the unit of distances from exact values.

It is the spread of runs with random roundings, plus the distance to the next number of the dtype, plus,
because elements may happen to be small, a fraction of both over the elements of usual size. An element that
is far larger than those in which compiled and eager differ, such as a mask's fill of -1e9, is not of usual
size: it says nothing about the others.
"""

from __future__ import annotations

import torch

from tracing.numerics.reference import Expected
from tracing.numerics.rounding import real, units
from tracing.numerics.shadow_storages import is_inexact

_SHARE = 1 / 16  # of the root mean square of the usual noise of a tensor, which each element may have
_USUAL = 16.0  # the usual noise is at most that many times the lower quartile of the elements that differ
_OVERFLOWN = 1 / 1024  # of the value: one rounding where eager overflows


def rounding(expected: Expected, differing: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The effect of one rounding on each element of a result of that dtype: [*] float64, as `exact`.

    differing -- [*] bool, elements in which compiled and eager differ
    """
    noise = own_noise(expected, dtype)
    return noise + common_noise(noise, expected, differing)


def own_noise(expected: Expected, dtype: torch.dtype) -> torch.Tensor:
    """One rounding of each element by itself: [*] float64, as `exact`; of integers only the spread."""
    if not is_inexact(expected.exact):
        return expected.spread
    return expected.spread + units(expected.exact.abs().to(torch.float64), real(dtype))


def without_overflow(
    noise: torch.Tensor, compiled: torch.Tensor, eager: torch.Tensor, expected: Expected
) -> torch.Tensor:
    """The noise, [*] float64, with less where eager overflows and compiled does not.

    The runs that measure the spread overflow there, too: it would explain any number in compiled, that of a
    cast that saturates, too.
    """
    if not is_inexact(expected.exact):
        return noise
    sizes = expected.exact.abs().to(torch.float64)
    overflown = wider(eager).isinf() & wider(compiled).isfinite() & sizes.isfinite()
    return torch.where(overflown, torch.minimum(noise, sizes * _OVERFLOWN), noise)


def common_noise(noise: torch.Tensor, expected: Expected, differing: torch.Tensor) -> float:
    """The noise that every element may have, from the noise, [*] float64, of elements of usual size.

    differing -- [*] bool, elements in which compiled and eager differ
    """
    if not is_inexact(expected.exact):
        return 0.0
    finite = torch.isfinite(noise) & torch.isfinite(expected.exact)
    values = finite & (expected.exact != 0)
    some = noise[values & differing] if bool((values & differing).any()) else noise[values]
    if not some.numel():
        return 0.0
    quartile = float(some.kthvalue((some.numel() + 3) // 4).values)
    usual = noise[finite & (noise <= _USUAL * quartile)]
    return _SHARE * float((usual * usual).mean().sqrt())


def wider(values: torch.Tensor) -> torch.Tensor:
    """[*] the values, those of 8 bits in float32: torch does not know which float8 are finite."""
    return values.to(torch.float32) if values.is_floating_point() and values.itemsize == 1 else values
