"""How far compiled and eager are from each other where exact arithmetic may not decide between them.

Two results may be inexact alike, as with TF32: then they differ from each other by little. If they differ by
much, or if float64 gives NaN or infinity where eager gives a number, exact arithmetic does not decide which
one is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch

from tracing.numerics.shadow_storages import is_inexact

Far: TypeAlias = tuple[torch.Tensor, torch.Tensor]  # [*] float64 of compiled and of eager, in roundings
_LARGE = 1 / 16  # of the value in eager plus the median value: TF32 and other formats explain less
_FEW = 1 / 64  # of the elements; the sign of a few gradients that are almost zero is decided by rounding


@dataclass(frozen=True, slots=True)
class EagerDifference:
    """The elements in which compiled and eager differ from each other, and from exact arithmetic."""

    elements: int  # with a large difference, or a difference beyond eager's tolerances without a reference
    of: int
    unknown: bool  # some of them have no reference: it is not finite, or both are infinitely far from it
    index: tuple[int, ...]  # of the largest difference, where eager is off, too, if there is one
    compiled: float | complex
    eager: float | complex
    exact: float | complex
    relative: float  # the largest difference, relative to the value in eager plus the median value

    @property
    def decides_nothing(self) -> bool:
        """True if compiled and eager are not inexact alike: nothing tells which one is wrong."""
        return self.elements > (0 if self.unknown else _FEW * self.of)


def eager_difference(
    compiled: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor, far: Far, *, limit: float
) -> EagerDifference:
    """Compare compiled with eager, where exact arithmetic may not decide between them.

    compiled, eager, exact -- [*] of one shape, with at least one element
    far                    -- the distance of each element from its exact value
    limit                  -- the distance that rounding explains, in roundings
    """
    relative = _relative(compiled, eager, exact)
    lost = far[1].isinf() & (far[0].isinf() | ~exact.isfinite())
    large = (far[0] > limit) & ~lost & (relative > _LARGE)
    unknown = not _agree(compiled[lost], eager[lost])
    counted = large | (lost & (relative > 0)) if unknown else large
    among = lost if unknown else large if bool(large.any()) else torch.ones_like(lost)
    neither = among & (far[1] > limit)  # not where exact arithmetic agrees with eager, if there are others
    among = neither if bool(neither.any()) else among
    index = index_of(int(torch.where(among, relative, -1.0).argmax()), compiled.shape)
    return EagerDifference(
        int(counted.sum()), compiled.numel(), unknown, index, compiled[index].item(), eager[index].item(),
        exact[index].item(), float(relative[index]),
    )  # fmt: skip


def index_of(position: int, shape: torch.Size) -> tuple[int, ...]:
    """The index of the element at a position of the flattened tensor."""
    if not shape:
        return ()
    return tuple(int(one) for one in torch.unravel_index(torch.tensor(position), shape))


def _relative(compiled: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    # [*] float64; of integers: whether they differ
    differing = (compiled != eager) & ~(compiled.isnan() & eager.isnan())
    if not is_inexact(exact):
        return differing.to(torch.float64)
    ours, theirs = compiled.to(exact.dtype), eager.to(exact.dtype)
    sizes = theirs.abs().to(torch.float64)
    some = sizes[differing & sizes.isfinite()]
    usual = float(some.median()) if some.numel() else 0.0
    apart = (ours - theirs).abs().to(torch.float64) / (sizes + usual)
    return torch.where(differing, apart.nan_to_num(nan=torch.inf, posinf=torch.inf), 0.0)


def _agree(compiled: torch.Tensor, eager: torch.Tensor) -> bool:
    try:
        torch.testing.assert_close(compiled, eager, equal_nan=True)
    except AssertionError:
        return False
    return True
