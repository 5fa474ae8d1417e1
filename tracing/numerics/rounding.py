"""Rounding as noise: the distance between adjacent numbers of a dtype, and rounding up or down at random.

Source: Monte Carlo arithmetic (D. S. Parker, 1997). Rounding every intermediate result at random shows how
far rounding, in any order of operations, may move the final result.
"""

from __future__ import annotations

import torch


class Noise:
    """Random numbers on each device, from generators separate from the program's."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def uniform(self, like: torch.Tensor) -> torch.Tensor:
        """[*] float64 in [-1, 1), of the shape and on the device of `like`."""
        generator = self._generators.get(like.device)
        if generator is None:
            generator = torch.Generator(like.device).manual_seed(self._seed)
            self._generators[like.device] = generator
        drawn = torch.rand(like.shape, dtype=torch.float64, device=like.device, generator=generator)
        return drawn * 2 - 1


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
    dtype  -- floating
    """
    limits = torch.finfo(dtype)
    _, exponent = torch.frexp(values)
    spacing = torch.ldexp(torch.full_like(values, limits.eps), exponent - 1)
    return spacing.clamp(min=limits.tiny * limits.eps).nan_to_num(nan=limits.tiny)


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
    nearest = values.to(dtype).to(values.dtype)
    shift = noise.uniform(values) * units(values, dtype) / 2
    return torch.where(nearest == values, values, (values + shift).to(dtype).to(values.dtype))


def perturbed(values: torch.Tensor, relative: float, noise: Noise) -> torch.Tensor:
    """[*] each value times 1 + u, u uniform between -relative and relative."""
    return values * (1 + relative * noise.uniform(values))
