"""Finds the elements in which the bits of two tensors differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tracing.digest.columns import TILE_BYTES, block_tiles, blocks
from tracing.model import DifferingElements

_RANGES = 4  # that are listed of those in which elements differ
_NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True, slots=True)
class Difference:
    """The differing elements of two tensors of one shape and dtype."""

    mask: torch.Tensor  # [elements] bool, in logical order
    largest: float  # |difference| of two finite elements

    @classmethod
    def none(cls, tensor: torch.Tensor) -> Difference:
        """No element of a tensor differs."""
        return cls(torch.zeros(tensor.numel(), dtype=torch.bool, device=tensor.device), 0.0)

    @classmethod
    def between(cls, a: torch.Tensor, b: torch.Tensor) -> Difference:
        """Compare two contiguous tensors; NaNs of the same bits are equal, 0.0 and -0.0 are not."""
        mask = (_bytes(a) != _bytes(b)).any(1)
        if a.dtype not in _NUMBERS or not bool(mask.any()):
            return cls(mask, 0.0)
        values = [tensor.reshape(-1)[mask].double() for tensor in (a, b)]
        apart = (values[0] - values[1]).abs()
        finite = apart[apart.isfinite()]
        return cls(mask, float(finite.max()) if len(finite) else 0.0)

    def __bool__(self) -> bool:
        return bool(self.mask.any())

    def __or__(self, other: Difference) -> Difference:
        return Difference(self.mask | other.mask, max(self.largest, other.largest))

    def __and__(self, other: Difference) -> Difference:
        return Difference(self.mask & other.mask, 0.0)

    def without(self, other: Difference) -> Difference:
        """Elements that differ here but not in `other`."""
        return Difference(self.mask & ~other.mask, self.largest)

    def untouched_ranges(self, nbytes: int) -> tuple[int, ...]:
        """The ranges of a digest's `tiles` in which no element differs.

        nbytes -- of the tensor
        """
        mask = self.mask.cpu().numpy()
        step = max(1, TILE_BYTES * block_tiles(nbytes) * len(mask) // max(1, nbytes))  # elements in a range
        return tuple(n for n in range(blocks(nbytes)) if not mask[n * step : (n + 1) * step].any())


def elements(differences: Mapping[str, Difference]) -> tuple[DifferingElements, ...]:
    """The arguments that differ, by name."""
    return tuple(
        DifferingElements(
            name, int(one.mask.sum()), len(one.mask), _ranges(one.mask.cpu().numpy()), one.largest
        )
        for name, one in differences.items()
        if one
    )


def chosen(mask: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The elements of `a` where a mask of elements in logical order is True, those of `b` elsewhere.

    a, b -- [*] of one dtype and shape; `b` is contiguous
    """
    result = b.clone()
    _bytes(result)[mask] = _bytes(a.to(b.device).contiguous())[mask]
    return result


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8).reshape(tensor.numel(), tensor.element_size())


def _ranges(mask: Any) -> tuple[tuple[int, int], ...]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    return tuple((int(start), int(stop)) for start, stop in edges.reshape(-1, 2)[:_RANGES])
