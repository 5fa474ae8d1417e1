"""Rounding as noise: the distance between adjacent numbers of a dtype, and rounding up or down at random.

Source: Monte Carlo arithmetic (D. S. Parker, 1997). Rounding every intermediate result at random shows how
far rounding, in any order of operations, may move the final result.
"""

from __future__ import annotations

import math

import torch

_MANTISSA = 52  # bits of float64
_WIDE_RANGE = (torch.float32, torch.bfloat16)  # whose numbers are seldom so small that they lack bits


class Noise:
    """Random numbers on each device, from generators separate from the program's."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.cuts = seed % 2 == 0  # `narrowed` cuts bits off: the errors of many numbers add up
        self._generators: dict[torch.device, torch.Generator] = {}

    def uniform(self, like: torch.Tensor) -> torch.Tensor:
        """[*] float64 in [-1, 1), of the shape and on the device of `like`."""
        drawn = torch.rand(
            like.shape, dtype=torch.float64, device=like.device, generator=self._generator(like.device)
        )
        return drawn * 2 - 1

    def coin(self) -> bool:
        """True or False, each as likely."""
        return bool(self.uniform(torch.empty(1)) < 0)

    def bits(self, like: torch.Tensor, count: int) -> torch.Tensor:
        """[*] int64 of that many low bits, 31 of them random, of the shape and on the device of `like`."""
        drawn = torch.empty(like.shape, dtype=torch.int32, device=like.device)
        drawn.random_(generator=self._generator(like.device))
        return drawn.to(torch.int64).bitwise_left_shift_(14) >> (45 - count)

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]


def wide(dtype: torch.dtype) -> torch.dtype:
    """float64 for a floating dtype, complex128 for a complex one, else the dtype itself."""
    if dtype.is_complex:
        return torch.complex128
    return torch.float64 if dtype.is_floating_point else dtype


def real(dtype: torch.dtype) -> torch.dtype:
    """The floating dtype of the parts of a complex dtype; a floating dtype itself."""
    return dtype.to_real() if dtype.is_complex else dtype


def units(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """[*] float64: the distance from each value to the next one that `dtype` has.

    values -- [*] float64
    dtype  -- floating; kernels may flush those below the least normal float32 to 0, as `ex2.approx.ftz` does
    """
    limits = torch.finfo(dtype)
    least = limits.tiny if dtype in _WIDE_RANGE else limits.tiny * limits.eps
    _, exponent = torch.frexp(values)
    spacing = torch.ldexp(torch.full_like(values, limits.eps), exponent - 1)
    return spacing.clamp(min=least).nan_to_num(nan=limits.tiny)


def rounded_at_random(values: torch.Tensor, dtype: torch.dtype, noise: Noise) -> torch.Tensor:
    """[*] each value rounded to one of its two neighbours in `dtype`, the nearer the likelier.

    values -- [*] float64 or complex128
    dtype  -- that of the program's own tensor
    """
    if values.is_complex():
        parts = rounded_at_random(torch.view_as_real(values), real(dtype), noise)
        return torch.view_as_complex(parts.contiguous())
    if dtype == torch.float64:  # nothing wider to round from; whole numbers are exact, as in narrower dtypes
        return torch.where(values == values.round(), values, perturbed(values, torch.finfo(dtype).eps, noise))
    if dtype in _WIDE_RANGE:
        mantissa = -int(math.log2(torch.finfo(dtype).eps))
        return _shortened(values, mantissa, noise).to(dtype).to(values.dtype)  # an inf if it is too large
    nearest = values.to(dtype).to(values.dtype)
    shift = noise.uniform(values) * units(values, dtype) / 2
    return torch.where(nearest == values, values, (values + shift).to(dtype).to(values.dtype))


def narrowed(values: torch.Tensor, mantissa: int, noise: Noise) -> torch.Tensor:
    """[*] each value with fewer bits of mantissa: rounded at random, or cut off, as `noise` says.

    values -- [*] float64 or complex128
    """
    if values.is_complex():
        parts = narrowed(torch.view_as_real(values.resolve_conj()), mantissa, noise)
        return torch.view_as_complex(parts.contiguous())
    values = values.resolve_neg()
    return _shortened(values, mantissa, None if noise.cuts else noise)


def _shortened(values: torch.Tensor, mantissa: int, noise: Noise | None) -> torch.Tensor:
    # [*] float64: towards zero without noise
    lacking = _MANTISSA - mantissa
    bits, kept = values.view(torch.int64), -1 << lacking
    moved = noise.bits(values, lacking).add_(bits).bitwise_and_(kept) if noise else bits.bitwise_and(kept)
    return moved.view(torch.float64)


def perturbed(values: torch.Tensor, relative: float, noise: Noise) -> torch.Tensor:
    """[*] each value times 1 + u, u uniform between -relative and relative."""
    return values * (1 + relative * noise.uniform(values))
