"""Counts NaN, inf and -0.0 in a tensor's words, in a second reading, where there are any."""

from __future__ import annotations

import triton
import triton.language as tl

from tracing.digest.host import TILE_WORDS
from tracing.digest.statistics import doubles, float_bits
from tracing.digest.words import last_words, scattered_words

_WORDS = tl.constexpr(TILE_WORDS)
_STEP = tl.constexpr(TILE_WORDS // 8)  # words at a time: registers are short
_LEAST = tl.constexpr(-(1 << 31))


@triton.jit  # type: ignore[untyped-decorator]
def _counted(words, values, l1, counts, KIND: tl.constexpr, PARTS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sum of finite magnitudes; NaN, inf and -0.0 counted in 10 bits each."""
    for part in tl.static_range(PARTS):
        bits = float_bits(words, values, KIND, part)
        magnitude = bits & 0x7FFFFFFF
        value = tl.where(magnitude < 0x7F800000, magnitude, 0).to(tl.float32, bitcast=True)
        l1 += value.to(tl.float64)
        counts += tl.where(magnitude > 0x7F800000, 1, 0)
        counts += tl.where(magnitude == 0x7F800000, 1 << 10, 0)
        counts += tl.where(bits == 0x80000000, 1 << 20, 0)
    return l1, counts


@triton.jit
def _counted_doubles(words, l1, counts):  # type: ignore[no-untyped-def]
    less, more = doubles(words)
    magnitude = ((more & 0x7FFFFFFF).to(tl.uint64) << 32) | less
    infinite = tl.full((), 0x7FF0000000000000, tl.uint64)
    l1 += tl.where(magnitude < infinite, magnitude, 0).to(tl.float64, bitcast=True)
    counts += tl.where(magnitude > infinite, 1, 0)
    counts += tl.where(magnitude == infinite, 1 << 10, 0)
    counts += tl.where((magnitude == 0) & (more > 0), 1 << 20, 0)
    return l1, counts


@triton.jit  # type: ignore[untyped-decorator]
def recount(  # type: ignore[no-untyped-def]
    address, begin, count, nbytes, layout, values, KIND: tl.constexpr, PARTS: tl.constexpr,
    UNIT: tl.constexpr,
):  # fmt: skip
    """Reread tiles begin:begin+count: the sum of finite magnitudes, and counts of the others."""
    WIDE: tl.constexpr = _STEP // 2 if KIND == 4 else _STEP
    PIECES: tl.constexpr = _WORDS // _STEP
    l1 = tl.zeros((WIDE,), tl.float64)
    counts = tl.zeros((WIDE,), tl.int32)
    for i in range(0, count * PIECES):
        first = (begin + i // PIECES) * _WORDS + i % PIECES * _STEP
        if UNIT > 0:
            words = scattered_words(address, first, nbytes, layout, _STEP, UNIT)
        else:
            words = last_words(address, first + tl.arange(0, _STEP), nbytes)
        if KIND == 4:
            l1, counts = _counted_doubles(words, l1, counts)
        else:
            l1, counts = _counted(words, values, l1, counts, KIND, PARTS)
    return tl.sum(l1, 0), counts


@triton.jit
def is_special(norm, low):  # type: ignore[no-untyped-def]
    """Whether values with this norm and least bits may be NaN, inf or -0.0, or their sum overflows."""
    return (norm != norm) | (norm == float("inf")) | (low == _LEAST)


@triton.jit
def add_counts(here, counts):  # type: ignore[no-untyped-def]
    """Add the counts of NaN, inf and -0.0 to a slot."""
    tl.atomic_add(here + 2, tl.sum(counts & 1023, 0).to(tl.int64), sem="relaxed")
    tl.atomic_add(here + 3, tl.sum((counts >> 10) & 1023, 0).to(tl.int64), sem="relaxed")
    tl.atomic_add(here + 4, tl.sum(counts >> 20, 0).to(tl.int64), sem="relaxed")
