"""The words of a tensor as a Triton kernel loads them: linearly, or through its strides."""

from __future__ import annotations

import triton
import triton.language as tl

from tracing.digest.host import TILE_WORDS

HALF = TILE_WORDS // 2  # words that are loaded at a time

_HALF = tl.constexpr(HALF)
_WORDS = tl.constexpr(TILE_WORDS)


@triton.jit
def _where(first, k, layout):  # type: ignore[no-untyped-def]
    """The positions of units first + k of a tensor: [n] uint32."""
    n1, n2, n3, s0, s1, s2, s3, long = layout
    first = first.to(tl.uint32)
    k = k.to(tl.uint32)
    if long > 0:  # two dimensions, and at most one end of a row among these units
        whole = first // n3
        column = k + (first - whole * n3)
        where = whole * s2 + column + tl.where(column >= n3, s2 - n3, 0)
    else:
        rest = first + k
        row = rest // n3
        where = (rest - row * n3) * s3
        rest = row // n2
        where += (row - rest * n2) * s2
        row = rest // n1
        where += (rest - row * n1) * s1 + row * s0
    return where


@triton.jit  # type: ignore[untyped-decorator]
def _by_sixteen(address, first, nbytes, layout, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]
    k = tl.arange(0, COUNT // 4)
    words = tl.multiple_of(address.to(tl.pointer_type(tl.uint32)), 16)
    four = (words + _where(first // 4, k, layout).to(tl.int64) * 4)[:, None] + tl.arange(0, 4)[None, :]
    there = ((first // 4 + k) * 16 < nbytes)[:, None]
    return tl.reshape(tl.load(four, mask=there, other=0), (COUNT,))


@triton.jit  # type: ignore[untyped-decorator]
def _by_four(address, first, nbytes, layout, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]
    k = tl.arange(0, COUNT)
    words = address.to(tl.pointer_type(tl.uint32)) + _where(first, k, layout)
    return tl.load(words, mask=(first + k) * 4 < nbytes, other=0)


@triton.jit  # type: ignore[untyped-decorator]
def _by_two(address, first, nbytes, layout, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]
    k = 2 * tl.arange(0, COUNT)
    halves = address.to(tl.pointer_type(tl.uint16))
    low = tl.load(halves + _where(2 * first, k, layout), mask=(2 * first + k) * 2 < nbytes, other=0)
    high = tl.load(halves + _where(2 * first, k + 1, layout), mask=(2 * first + k + 1) * 2 < nbytes, other=0)
    return low.to(tl.uint32) | (high.to(tl.uint32) << 16)


@triton.jit  # type: ignore[untyped-decorator]
def scattered_words(address, first, nbytes, layout, COUNT: tl.constexpr, UNIT: tl.constexpr):  # type: ignore[no-untyped-def]
    """COUNT words from word `first` of a tensor that is read through its strides, zeros after its end."""
    if UNIT == 16:
        words = _by_sixteen(address, first, nbytes, layout, COUNT)
    elif UNIT == 4:
        words = _by_four(address, first, nbytes, layout, COUNT)
    else:
        words = _by_two(address, first, nbytes, layout, COUNT)
    return words


@triton.jit  # type: ignore[untyped-decorator]
def aligned_words(address, rows, column, step, UNIT: tl.constexpr):  # type: ignore[no-untyped-def]
    """Words that begin in these columns of a matrix whose rows are adjacent in memory: [columns, rows].

    rows -- adjacent; the first one, like the step between columns, is a multiple of 16 bytes
    """
    ALIGNED: tl.constexpr = 16 // UNIT
    at = tl.multiple_of((column * step)[:, None] + rows[None, :], (1, ALIGNED))
    if UNIT == 4:
        words = tl.load(tl.multiple_of(address.to(tl.pointer_type(tl.uint32)), 16) + at)
    else:
        halves = tl.multiple_of(address.to(tl.pointer_type(tl.uint16)), 16)
        after = tl.multiple_of(at + step, (1, ALIGNED))
        words = tl.load(halves + at).to(tl.uint32) | (tl.load(halves + after).to(tl.uint32) << 16)
    return words


@triton.jit
def row_begins(rows, layout):  # type: ignore[no-untyped-def]
    """The positions of the first units of rows."""
    n1, n2 = layout[0], layout[1]
    rows = rows.to(tl.uint32)
    outer = rows // n2
    whole = outer // n1
    return (rows - outer * n2) * layout[5] + (outer - whole * n1) * layout[4] + whole * layout[3]


@triton.jit  # type: ignore[untyped-decorator]
def row_words(address, begins, nexts, v, width, layout, there, more, UNIT: tl.constexpr):  # type: ignore[no-untyped-def]
    """Words v of rows, whose width is in words; later ones are those of the next rows.

    begins, nexts -- positions of the first units of these rows, and of the next ones
    there, more   -- which words are read, the others are zeros; which rows have a next one
    """
    PER: tl.constexpr = 4 // UNIT
    within = v < width
    column = tl.where(within, v, v - width).to(tl.uint32) * PER
    at = tl.where(within, begins[None, :], nexts[None, :]) + column * layout[6]
    there = there & (within | more[None, :])
    if UNIT == 4:
        words = tl.load(address.to(tl.pointer_type(tl.uint32)) + at, mask=there, other=0)
    else:
        halves = address.to(tl.pointer_type(tl.uint16))
        low = tl.load(halves + at, mask=there, other=0).to(tl.uint32)
        words = low | (tl.load(halves + (at + layout[6]), mask=there, other=0).to(tl.uint32) << 16)
    return words


@triton.jit
def last_words(address, at, nbytes):  # type: ignore[no-untyped-def]
    """Words `at` of a tensor that ends in this tile: zeros after its end, and its last bytes as a word."""
    whole = nbytes // 4
    words = tl.load(address.to(tl.pointer_type(tl.uint32)) + at, mask=at < whole, other=0)
    bytes_ = address.to(tl.pointer_type(tl.uint8)) + whole * 4
    rest = nbytes - whole * 4
    last = tl.load(bytes_, mask=rest > 0, other=0).to(tl.uint32)
    last |= tl.load(bytes_ + 1, mask=rest > 1, other=0).to(tl.uint32) << 8
    last |= tl.load(bytes_ + 2, mask=rest > 2, other=0).to(tl.uint32) << 16
    return tl.where(at == whole, last, words)


@triton.jit
def whole_halves(address, tile):  # type: ignore[no-untyped-def]
    """Both halves of a tile of a contiguous tensor, which does not end in it."""
    words = tl.multiple_of(address.to(tl.pointer_type(tl.uint32)), 16)
    at = words + tile * _WORDS + tl.arange(0, _HALF)
    return tl.load(at), tl.load(at + _HALF)


@triton.jit  # type: ignore[untyped-decorator]
def _words_from(address, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]
    """COUNT words that are adjacent in memory; where the address is odd in halves, from two words each."""
    odd = (address >> 1) & 1
    at = (address - odd * 2).to(tl.pointer_type(tl.uint32)) + tl.arange(0, COUNT)
    words = tl.load(at)
    after = tl.load(at + 1, mask=odd > 0, other=0)
    return tl.where(odd > 0, (words >> 16) | (after << 16), words)


@triton.jit  # type: ignore[untyped-decorator]
def _strided_halves(address, tile, nbytes, layout, UNIT: tl.constexpr):  # type: ignore[no-untyped-def]
    """Both halves of a tile of a tensor that is read through its strides."""
    row_size, step, long = layout[2], layout[5], layout[7]
    UNITS: tl.constexpr = _WORDS * 4 // UNIT
    first = (tile * UNITS).to(tl.uint32)
    row = first // row_size
    column = first - row * row_size
    if (UNIT < 16) & (long > 0) & (column + UNITS < row_size):
        start = address + (row * step + column).to(tl.int64) * UNIT
        x, y = _words_from(start, _HALF), _words_from(start + _HALF * 4, _HALF)
    else:
        x = scattered_words(address, tile * _WORDS, nbytes, layout, _HALF, UNIT)
        y = scattered_words(address, tile * _WORDS + _HALF, nbytes, layout, _HALF, UNIT)
    return x, y


@triton.jit  # type: ignore[untyped-decorator]
def tile_halves(address, tile, nbytes, layout, UNIT: tl.constexpr):  # type: ignore[no-untyped-def]
    """Both halves of a tile of a tensor."""
    at = tile * _WORDS + tl.arange(0, _HALF)
    if UNIT > 0:
        x, y = _strided_halves(address, tile, nbytes, layout, UNIT)
    elif (tile + 1) * _WORDS * 4 <= nbytes:
        x, y = whole_halves(address, tile)
    else:
        x = last_words(address, at, nbytes)
        y = last_words(address, at + _HALF, nbytes)
    return x, y
