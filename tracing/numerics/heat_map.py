"""Show the positions of a tensor's errors: the largest errors on a grid that fits a screen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

ROWS, COLUMNS = 24, 64  # at most
_SHADES = " .:-=+*#%@"


def heat_map(error: torch.Tensor) -> list[list[float]]:
    """The largest error in each cell of a grid of at most 24 x 64 cells.

    error -- [*] float64, at least 0; all dimensions except the last are rows
    """
    columns = error.shape[-1] if error.dim() else 1
    plane = error.reshape(-1, columns)
    for dimension, most in ((0, ROWS), (1, COLUMNS)):
        plane = _largest(plane, dimension, most)
    return [list(row) for row in plane.tolist()]


def _largest(plane: torch.Tensor, dimension: int, most: int) -> torch.Tensor:
    size = plane.shape[dimension]
    if size <= most:
        return plane
    return torch.stack([part.amax(dimension) for part in plane.tensor_split(most, dimension)], dimension)


def shaded(heat: Sequence[Sequence[float]]) -> list[str]:
    """The grid as lines of characters: a space where nothing differs, darker by the logarithm of the error.

    An error that is not finite is "!".
    """
    finite = [value for row in heat for value in row if 0 < value < math.inf]
    low, high = (math.log(min(finite)), math.log(max(finite))) if finite else (0.0, 0.0)
    return ["".join(_shade(value, low, high) for value in row) for row in heat]


def _shade(value: float, low: float, high: float) -> str:
    if not value:
        return _SHADES[0]
    if math.isinf(value):
        return "!"
    share = (math.log(value) - low) / (high - low) if high > low else 1.0
    return _SHADES[1 + round(share * (len(_SHADES) - 2))]
