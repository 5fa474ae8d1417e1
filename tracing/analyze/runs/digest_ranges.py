"""Compute the ranges in which two tensors differ from their digests.

A digest keeps 12 bits for each of up to eight equal ranges of a tensor's elements. Ranges with different bits
differ; of the ranges that differ, one in 4096 has equal bits and goes unnoticed.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from tracing.digest.columns import RANGE, TILE_BYTES, block_tiles
from tracing.model import Digest, TensorMeta
from tracing.views import element_bytes

DigestPair: TypeAlias = tuple[Digest, Digest]
Blame: TypeAlias = Literal["launch", "untouched", "open"]


def differing_elements(
    meta: TensorMeta, a: Digest, b: Digest, before: DigestPair | None = None
) -> list[tuple[int, int]]:
    """Ranges START:STOP of elements, in logical order, in which two tensors of one layout differ.

    before -- of both: only where these are equal
    """
    size, count = element_bytes(meta.dtype), math.prod(meta.shape)
    step = TILE_BYTES * block_tiles(size * count) // size
    ranges: list[tuple[int, int]] = []
    for start in range(0, min(len(a.tiles), len(b.tiles)), RANGE):
        if _differ((a, b), start) and not (before and _differ(before, start)):
            first = start // RANGE * step
            stop = min(first + step, count)
            if ranges and ranges[-1][1] == first:
                ranges[-1] = (ranges[-1][0], stop)
            else:
                ranges.append((first, stop))
    return ranges


def blame(before: DigestPair, after: DigestPair) -> Blame:
    """Decide whether two launches caused a difference in memory that may have differed before.

    before, after -- the digests of one argument in both runs

    "launch": some range that differs was equal before. "untouched": no range that differs was changed by the
    launch, in either run. "open": the ranges that differ also differed before and were changed: the launch
    may have written a part of a range while the rest differs.
    """
    if before[0].bits == before[1].bits:
        return "launch"
    ranges = range(0, min(len(one.tiles) for one in (*before, *after)), RANGE)
    differing = [start for start in ranges if _differ(after, start)]
    if not any(_differ(before, start) for start in ranges) or not differing:
        return "open"  # if the digests differ, 12 bits are equal by chance
    if not all(_differ(before, start) for start in differing):
        return "launch"
    changed = (_differ(pair, start) for pair in zip(before, after, strict=True) for start in differing)
    return "open" if any(changed) else "untouched"


def _differ(pair: DigestPair, start: int) -> bool:
    a, b = pair
    return a.tiles[start : start + RANGE] != b.tiles[start : start + RANGE]
