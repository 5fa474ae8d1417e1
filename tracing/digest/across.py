"""Reads long rows that are adjacent in memory, as those of a transposed matrix, 16 at a time."""

from __future__ import annotations

import triton
import triton.language as tl

from tracing.digest.host import TILE_WORDS
from tracing.digest.layouts import ROWS_ACROSS
from tracing.digest.special import add_counts, is_special, recount
from tracing.digest.statistics import tally
from tracing.digest.sums import keys, mixed, products
from tracing.digest.words import HALF, aligned_words, row_begins, row_words

_HALF = tl.constexpr(HALF)
_WORDS = tl.constexpr(TILE_WORDS)
_TOGETHER = tl.constexpr(ROWS_ACROSS)
# measured on an H200
_STAGES = tl.constexpr(3)  # of words, from their reading to their sums
_WIDE = tl.constexpr(64)  # words of a tile that `read_whole` reads at a time
_NARROW = tl.constexpr(32)  # the same of `read_across`


@triton.jit  # type: ignore[untyped-decorator]
def read_whole(  # type: ignore[no-untyped-def]
    address, program, parts, nbytes, layout, values, here, block, KIND: tl.constexpr, PARTS: tl.constexpr
):
    """Add the sums and the statistics of the tiles that contain the same columns of 16 rows to a slot.

    parts -- the tiles of a row; these rows and their columns are aligned, and there are at least 16

    The last program reads some rows a second time: loads without a mask are of 16 bytes.
    """
    UNIT: tl.constexpr = 4 if KIND == 1 else 2
    PER: tl.constexpr = 4 // UNIT  # elements of a word
    group, tile = program // parts, program % parts
    start = group.to(tl.uint32) * _TOGETHER
    first = tl.multiple_of(tl.minimum(start, layout[1] - _TOGETHER), 16 // UNIT)
    rows = first + tl.arange(0, _TOGETHER)
    there = rows >= start
    column = tile.to(tl.uint32) * (_WORDS * PER)
    sums0 = tl.zeros((_WIDE, _TOGETHER), tl.uint64)
    sums1 = tl.zeros((_WIDE, _TOGETHER), tl.uint64)
    l1 = tl.zeros((_WIDE, _TOGETHER), tl.float32)
    low = tl.zeros((_WIDE, _TOGETHER), tl.int32)
    for i in tl.range(0, _HALF // _WIDE, num_stages=_STAGES):
        u = (i * _WIDE + tl.arange(0, _WIDE)).to(tl.uint32)
        x = aligned_words(address, rows, column + u * PER, layout[6], UNIT)
        y = aligned_words(address, rows, column + (u + _HALF) * PER, layout[6], UNIT)
        products0, products1 = products(x, y, keys(u[:, None]))
        sums0 += products0
        sums1 += products1
        l1, low = tally(x, values, l1, low, KIND, PARTS)
        l1, low = tally(y, values, l1, low, KIND, PARTS)
    tiles = rows * parts + tile
    total0 = mixed(tl.sum(sums0, 0), tiles).to(tl.int64, bitcast=True)
    total1 = tl.sum(tl.where(there, mixed(tl.sum(sums1, 0), tiles), 0), 0).to(tl.int64, bitcast=True)
    tl.atomic_add(here + 5 + tiles // block, total0, mask=there, sem="relaxed")
    tl.atomic_add(here, total1, sem="relaxed")
    norm = tl.sum(tl.where(there, tl.sum(l1, 0), 0), 0).to(tl.float64)
    if is_special(norm, tl.min(tl.min(low, 0), 0)):
        norm = tl.zeros((), tl.float64)
        for row in range(start, first + _TOGETHER):
            some, counts = recount(address, row * parts + tile, 1, nbytes, layout, values, KIND, PARTS, UNIT)
            add_counts(here, counts)
            norm += some
    tl.atomic_add((here + 1).to(tl.pointer_type(tl.float64)), norm, sem="relaxed")


@triton.jit
def _first_tiles(rows, width):  # type: ignore[no-untyped-def]
    """The first tiles that begin in rows or after them."""
    return (rows * width + _WORDS - 1) // _WORDS


@triton.jit  # type: ignore[untyped-decorator]
def _halves(  # type: ignore[no-untyped-def]
    address, begins, nexts, v, at, width, layout, there, more, UNIT: tl.constexpr
):
    """The words at `v` in each row and those that they are multiplied with, by the half of the tile.

    at -- the positions in their tiles
    """
    one = row_words(address, begins, nexts, v, width, layout, there, more, UNIT)
    v = tl.where(at < _HALF, v + _HALF, v - _HALF)
    other = row_words(address, begins, nexts, v, width, layout, there, more, UNIT)
    return tl.where(at < _HALF, one, other), tl.where(at < _HALF, other, one)


@triton.jit  # type: ignore[untyped-decorator]
def _recounted(  # type: ignore[no-untyped-def]
    address, start, stop, begin, span, width, nbytes, layout, values, here, KIND: tl.constexpr,
    PARTS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Add the counts of the tiles begin:begin+span of rows start:stop to a slot; returns their norm."""
    norm = tl.zeros((), tl.float64)
    for row in range(start, stop):
        tile = _first_tiles(row, width) + begin
        left = tl.minimum(span, _first_tiles(row + 1, width) - tile)
        some, counts = recount(address, tile, left, nbytes, layout, values, KIND, PARTS, UNIT)
        add_counts(here, counts)
        norm += some
    return norm


@triton.jit  # type: ignore[untyped-decorator]
def read_across(  # type: ignore[no-untyped-def]
    address, program, parts, nbytes, layout, values, here, block, KIND: tl.constexpr, PARTS: tl.constexpr
):
    """Add the sums and the statistics of some tiles that begin in 16 rows to a slot.

    parts -- programs that share the tiles of these rows

    A tile may begin anywhere in its row. So that words of one column are read together, the first 1024 of
    each 2048 words of these rows are read one after another, each with the word that it is multiplied with,
    which is 1024 words later or earlier.
    """
    UNIT: tl.constexpr = 4 if KIND == 1 else 2
    width = layout[2].to(tl.int32) // (4 // UNIT)  # words of a row
    count = (nbytes // 4).to(tl.int32) // width
    parts = parts.to(tl.int32)
    group = program.to(tl.int32) // parts
    rows = group * _TOGETHER + tl.arange(0, _TOGETHER)
    begins, nexts, more = row_begins(rows, layout), row_begins(rows + 1, layout), rows + 1 < count
    first, after = _first_tiles(rows, width), _first_tiles(tl.minimum(rows + 1, count), width)
    skip = first * _WORDS - rows * width  # words before the first tile that begins in the row
    straddling = tl.max(skip, 0) > 0
    span = ((width + _WORDS - 1) // _WORDS + parts - 1) // parts
    begin = program.to(tl.int32) % parts * span
    sum0 = tl.zeros((_TOGETHER,), tl.uint64)
    sum1 = tl.zeros((_TOGETHER,), tl.uint64)
    total1 = tl.zeros((_TOGETHER,), tl.uint64)
    l1 = tl.zeros((_NARROW, _TOGETHER), tl.float32)
    low = tl.zeros((_NARROW, _TOGETHER), tl.int32)
    for chunk in range(begin, begin + span + 1):  # of 2048 words
        tiles = first + chunk  # that begin in it; those before them end in it
        last = chunk == begin + span
        ended, begun = (chunk > begin) & (tiles <= after), (tiles < after) & (not last)
        all0 = tl.zeros((_NARROW, _TOGETHER), tl.uint64)
        all1 = tl.zeros((_NARROW, _TOGETHER), tl.uint64)
        old0 = tl.zeros((_NARROW, _TOGETHER), tl.uint64)
        old1 = tl.zeros((_NARROW, _TOGETHER), tl.uint64)
        for i in range(0, tl.where(last & (not straddling), 0, _HALF // _NARROW)):
            u = (i * _NARROW + tl.arange(0, _NARROW))[:, None]
            old = u < skip[None, :]
            there = tl.where(old, ended[None, :], begun[None, :])
            at = (u - skip[None, :]) & (_WORDS - 1)
            v = chunk * _WORDS + u
            x, y = _halves(address, begins, nexts, v, at, width, layout, there, more, UNIT)
            products0, products1 = products(x, y, keys(at & (_HALF - 1)))
            all0 += tl.where(there, products0, 0)
            all1 += tl.where(there, products1, 0)
            old0 += tl.where(there & old, products0, 0)
            old1 += tl.where(there & old, products1, 0)
            l1, low = tally(x, values, l1, low, KIND, PARTS)
            l1, low = tally(y, values, l1, low, KIND, PARTS)
        rest0, rest1 = tl.sum(old0, 0), tl.sum(old1, 0)
        total0 = mixed(sum0 + rest0, tiles - 1).to(tl.int64, bitcast=True)
        tl.atomic_add(here + 5 + (tiles - 1) // block, total0, mask=ended, sem="relaxed")
        total1 += tl.where(ended, mixed(sum1 + rest1, tiles - 1), 0)
        sum0, sum1 = tl.sum(all0, 0) - rest0, tl.sum(all1, 0) - rest1
    tl.atomic_add(here, tl.sum(total1, 0).to(tl.int64, bitcast=True), sem="relaxed")
    norm = tl.sum(tl.sum(l1, 0), 0).to(tl.float64)
    if is_special(norm, tl.min(tl.min(low, 0), 0)):
        start, stop = group * _TOGETHER, tl.minimum((group + 1) * _TOGETHER, count)
        norm = _recounted(
            address, start, stop, begin, span, width, nbytes, layout, values, here, KIND, PARTS, UNIT
        )
    tl.atomic_add((here + 1).to(tl.pointer_type(tl.float64)), norm, sem="relaxed")
