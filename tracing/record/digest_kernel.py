"""The digest of `digest.py` as a Triton kernel: up to eight tensors in one launch, one read of memory.

A program reads some tiles of one tensor and adds what it finds to that tensor's slot. Additions of integers
commute, so the order in which programs finish does not matter; the L1 norm is a sum of float64 in that
order, and its last digits may vary. Statistics cost little while nothing is NaN, infinite or -0.0: only
then are the tiles read again, and counted.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tracing.digests import RANGES
from tracing.record.digest import TILE_WORDS

FIELDS = 5 + RANGES  # of a slot, 64 bits each: sum 1, L1, NaN, inf, -0.0, then sum 0 by range
COLUMNS = 15  # of a table: see `digest_kernel`
PLAIN = -1
HALF = TILE_WORDS // 2  # words that are loaded at a time
# How values are tallied. Complex ones are pairs; those of one byte are looked up in a table of 256.
KINDS = {
    torch.float32: 1,
    torch.complex64: 1,
    torch.bfloat16: 2,
    torch.float16: 3,
    torch.complex32: 3,
    torch.float64: 4,
    torch.complex128: 4,
    torch.float8_e4m3fn: 5,
    torch.float8_e5m2: 5,
    torch.float8_e4m3fnuz: 5,
    torch.float8_e5m2fnuz: 5,
}

_HALF = tl.constexpr(HALF)
_WORDS = tl.constexpr(TILE_WORDS)
_GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)
_FIELDS = tl.constexpr(FIELDS)
_COLUMNS = tl.constexpr(COLUMNS)
_STEP = tl.constexpr(TILE_WORDS // 8)  # words at a time where registers are short
_PLAIN = tl.constexpr(PLAIN)
_LEAST = tl.constexpr(-(1 << 31))


@triton.jit
def _mix32(x):  # type: ignore[no-untyped-def]
    x = (x ^ (x >> 16)) * 0x85EBCA6B
    x = (x ^ (x >> 13)) * 0xC2B2AE35
    return x ^ (x >> 16)


@triton.jit
def _mix64(x):  # type: ignore[no-untyped-def]
    x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCD
    x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53
    return x ^ (x >> 33)


@triton.jit
def _layout(row):  # type: ignore[no-untyped-def]
    """Unit, whether rows are long, 3 sizes and 4 strides from a row of the table: loaded once, used often."""
    unit, long = tl.load(row).to(tl.int32), tl.load(row + 8)
    n1, n2, n3 = (
        tl.load(row + 1).to(tl.uint32),
        tl.load(row + 2).to(tl.uint32),
        tl.load(row + 3).to(tl.uint32),
    )
    s0, s1 = tl.load(row + 4).to(tl.uint32), tl.load(row + 5).to(tl.uint32)
    s2, s3 = tl.load(row + 6).to(tl.uint32), tl.load(row + 7).to(tl.uint32)
    return unit, long, n1, n2, n3, s0, s1, s2, s3


@triton.jit
def _where(first, k, layout):  # type: ignore[no-untyped-def]
    """Where units first + k of a tensor lie: [n] uint32."""
    _unit, long, n1, n2, n3, s0, s1, s2, s3 = layout
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
def _scattered_words(address, first, nbytes, layout, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]
    """COUNT words from word `first` of a tensor that is read through its strides, zeros behind it."""
    unit = layout[0]
    if unit == 4:
        words = _by_sixteen(address, first, nbytes, layout, COUNT)
    elif unit == 2:
        words = _by_four(address, first, nbytes, layout, COUNT)
    else:
        words = _by_two(address, first, nbytes, layout, COUNT)
    return words


@triton.jit
def _last_words(address, at, nbytes):  # type: ignore[no-untyped-def]
    """Words `at` of a tensor that ends inside of this tile: zeros behind it, and its last bytes as a word."""
    whole = nbytes // 4
    words = tl.load(address.to(tl.pointer_type(tl.uint32)) + at, mask=at < whole, other=0)
    bytes_ = address.to(tl.pointer_type(tl.uint8)) + whole * 4
    rest = nbytes - whole * 4
    last = tl.load(bytes_, mask=rest > 0, other=0).to(tl.uint32)
    last |= tl.load(bytes_ + 1, mask=rest > 1, other=0).to(tl.uint32) << 8
    last |= tl.load(bytes_ + 2, mask=rest > 2, other=0).to(tl.uint32) << 16
    return tl.where(at == whole, last, words)


@triton.jit  # type: ignore[untyped-decorator]
def _float_bits(words, values, KIND: tl.constexpr, PART: tl.constexpr):  # type: ignore[no-untyped-def]
    """The float32 patterns of one of the values in each word."""
    if KIND == 2:
        bits = (words & 0xFFFF0000) if PART else (words << 16)
    elif KIND == 3:
        half = (words >> 16) if PART else (words & 0xFFFF)
        bits = half.to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32).to(tl.uint32, bitcast=True)
    elif KIND == 5:
        bits = tl.load(values + ((words >> (8 * PART)) & 255))
    else:
        bits = words
    return bits


@triton.jit  # type: ignore[untyped-decorator]
def _tally(words, values, l1, low, KIND: tl.constexpr, PARTS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sum of magnitudes, infinite or NaN if any is; the least as signed integers, which -0.0 is."""
    for part in tl.static_range(PARTS):
        bits = _float_bits(words, values, KIND, part)
        l1 += tl.abs(bits.to(tl.float32, bitcast=True))
        low = tl.minimum(low, bits.to(tl.int32, bitcast=True))
    return l1, low


@triton.jit
def _doubles(words):  # type: ignore[no-untyped-def]
    """The low and the high words of the doubles that stand in a block of words."""
    return tl.split(tl.reshape(words, (words.shape[0] // 2, 2)))


@triton.jit
def _tally_doubles(words, l1, low):  # type: ignore[no-untyped-def]
    """As `_tally`; of the least the high word, which a double near -0.0 has, too."""
    less, more = _doubles(words)
    l1 += tl.abs(((more.to(tl.uint64) << 32) | less).to(tl.float64, bitcast=True))
    return l1, tl.minimum(low, more.to(tl.int32, bitcast=True))


@triton.jit  # type: ignore[untyped-decorator]
def _count(words, values, l1, counts, KIND: tl.constexpr, PARTS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sum of finite magnitudes; NaN, inf and -0.0 counted in 10 bits each."""
    for part in tl.static_range(PARTS):
        bits = _float_bits(words, values, KIND, part)
        magnitude = bits & 0x7FFFFFFF
        value = tl.where(magnitude < 0x7F800000, magnitude, 0).to(tl.float32, bitcast=True)
        l1 += value.to(tl.float64)
        counts += tl.where(magnitude > 0x7F800000, 1, 0)
        counts += tl.where(magnitude == 0x7F800000, 1 << 10, 0)
        counts += tl.where(bits == 0x80000000, 1 << 20, 0)
    return l1, counts


@triton.jit
def _count_doubles(words, l1, counts):  # type: ignore[no-untyped-def]
    less, more = _doubles(words)
    magnitude = ((more & 0x7FFFFFFF).to(tl.uint64) << 32) | less
    infinite = tl.full((), 0x7FF0000000000000, tl.uint64)
    l1 += tl.where(magnitude < infinite, magnitude, 0).to(tl.float64, bitcast=True)
    counts += tl.where(magnitude > infinite, 1, 0)
    counts += tl.where(magnitude == infinite, 1 << 10, 0)
    counts += tl.where((magnitude == 0) & (more > 0), 1 << 20, 0)
    return l1, counts


@triton.jit
def _both(a0, a1, b0, b1):  # type: ignore[no-untyped-def]
    return a0 + b0, a1 + b1


@triton.jit
def _keys():  # type: ignore[no-untyped-def]
    u = tl.arange(0, _HALF).to(tl.uint32) + 1
    return _mix32(u), _mix32(u + _HALF), _mix32(u + _WORDS), _mix32(u + _WORDS + _HALF)


@triton.jit
def _hashed(x, y, keys, tile, total0, total1):  # type: ignore[no-untyped-def]
    """Add the two sums of a tile, whose halves are x and y, to those of the tensor."""
    a0, b0, a1, b1 = keys
    products0 = (x + a0).to(tl.uint64) * (y + b0).to(tl.uint64)
    products1 = (x + a1).to(tl.uint64) * (y + b1).to(tl.uint64)
    sum0, sum1 = tl.reduce((products0, products1), 0, _both)
    position = (tile + 1).to(tl.uint64) * _GOLDEN
    return total0 + _mix64(sum0 + position), total1 + _mix64(sum1 + position)


@triton.jit  # type: ignore[untyped-decorator]
def _halves(address, tile, nbytes, layout, ANY: tl.constexpr):  # type: ignore[no-untyped-def]
    """Both halves of a tile of a tensor."""
    words = tl.multiple_of(address.to(tl.pointer_type(tl.uint32)), 16)
    at = tile * _WORDS + tl.arange(0, _HALF)
    if ANY and layout[0] > 0:
        x = _scattered_words(address, tile * _WORDS, nbytes, layout, _HALF)
        y = _scattered_words(address, tile * _WORDS + _HALF, nbytes, layout, _HALF)
    elif (tile + 1) * _WORDS * 4 <= nbytes:
        x = tl.load(words + at)
        y = tl.load(words + at + _HALF)
    else:
        x = _last_words(address, at, nbytes)
        y = _last_words(address, at + _HALF, nbytes)
    return x, y


@triton.jit  # type: ignore[untyped-decorator]
def _recount(  # type: ignore[no-untyped-def]
    address, begin, count, nbytes, layout, values, here, KIND: tl.constexpr, PARTS: tl.constexpr,
    ANY: tl.constexpr,
):  # fmt: skip
    """Read tiles again and add the counts of NaN, inf and -0.0 to a slot; returns the sum of the rest."""
    WIDE: tl.constexpr = _STEP // 2 if KIND == 4 else _STEP
    l1 = tl.zeros((WIDE,), tl.float64)
    counts = tl.zeros((WIDE,), tl.int32)
    for i in range(0, count * (_WORDS // _STEP)):
        first = begin * _WORDS + i * _STEP
        if ANY and layout[0] > 0:
            words = _scattered_words(address, first, nbytes, layout, _STEP)
        else:
            words = _last_words(address, first + tl.arange(0, _STEP), nbytes)
        if KIND == 4:
            l1, counts = _count_doubles(words, l1, counts)
        else:
            l1, counts = _count(words, values, l1, counts, KIND, PARTS)
    tl.atomic_add(here + 2, tl.sum(counts & 1023, 0).to(tl.int64), sem="relaxed")
    tl.atomic_add(here + 3, tl.sum((counts >> 10) & 1023, 0).to(tl.int64), sem="relaxed")
    tl.atomic_add(here + 4, tl.sum(counts >> 20, 0).to(tl.int64), sem="relaxed")
    return tl.sum(l1, 0)


@triton.jit  # type: ignore[untyped-decorator]
def _read(  # type: ignore[no-untyped-def]
    address, begin, count, nbytes, row, here, block, KIND: tl.constexpr, PARTS: tl.constexpr,
    ANY: tl.constexpr,
):  # fmt: skip
    """Add the sums and the statistics of tiles begin ... begin + count - 1 of a tensor to its slot."""
    keys = _keys()
    layout = _layout(row)
    values = tl.load(row + 9).to(tl.pointer_type(tl.uint32))
    total0 = tl.zeros((), tl.uint64)
    total1 = tl.zeros((), tl.uint64)
    WIDE: tl.constexpr = _HALF // 2 if KIND == 4 else _HALF
    l1 = tl.zeros((WIDE,), tl.float64 if KIND == 4 else tl.float32)
    low = tl.zeros((WIDE,), tl.int32)
    for i in range(0, count):
        tile = begin + i
        x, y = _halves(address, tile, nbytes, layout, ANY)
        total0, total1 = _hashed(x, y, keys, tile, total0, total1)
        if KIND == 4:
            l1, low = _tally_doubles(x, l1, low)
            l1, low = _tally_doubles(y, l1, low)
        elif KIND > 0:
            l1, low = _tally(x, values, l1, low, KIND, PARTS)
            l1, low = _tally(y, values, l1, low, KIND, PARTS)
    tl.atomic_add(here + 5 + begin // block, total0.to(tl.int64, bitcast=True), sem="relaxed")
    tl.atomic_add(here, total1.to(tl.int64, bitcast=True), sem="relaxed")
    if KIND > 0:
        norm = tl.sum(l1, 0).to(tl.float64)
        # NaN, inf, a sum that overflows and -0.0 are looked at again
        if (norm != norm) | (norm == float("inf")) | (tl.min(low, 0) == _LEAST):
            norm = _recount(address, begin, count, nbytes, layout, values, here, KIND, PARTS, ANY)
        tl.atomic_add((here + 1).to(tl.pointer_type(tl.float64)), norm, sem="relaxed")


@triton.jit  # type: ignore[untyped-decorator]
def digest_kernel(  # type: ignore[no-untyped-def]
    p0, p1, p2, p3, p4, p5, p6, p7,
    table,
    out,
    KIND: tl.constexpr,
):  # fmt: skip
    """Add the sums of up to eight tensors to their slots.

    p0 ... p7 -- the addresses of the tensors
    table     -- [8, COLUMNS] int64, of each tensor: first program, bytes, tiles of a range, kind, tiles a
                 program; its layout: log2 of its unit (0: contiguous), 3 sizes, 4 strides, whether its rows
                 are long; the address of [256] float32 values of kind 5
    out       -- [8, FIELDS] int64
    KIND      -- tensors of this kind and of any layout; PLAIN: contiguous ones of kinds 0 to 4
    """
    pid = tl.program_id(0)
    # tensors start at ascending programs; one without programs starts where the next one does
    slot = tl.sum((tl.load(table + tl.arange(0, 8) * _COLUMNS) <= pid).to(tl.int32), 0) - 1
    address = p0
    address = tl.where(slot == 1, p1, address)
    address = tl.where(slot == 2, p2, address)
    address = tl.where(slot == 3, p3, address)
    address = tl.where(slot == 4, p4, address)
    address = tl.where(slot == 5, p5, address)
    address = tl.where(slot == 6, p6, address)
    address = tl.where(slot == 7, p7, address)
    row = table + slot * _COLUMNS
    nbytes = tl.load(row + 1)
    block = tl.load(row + 2)
    kind = tl.load(row + 3)
    step = tl.load(row + 4)
    begin = (pid - tl.load(row)) * step
    tiles = (nbytes + _WORDS * 4 - 1) // (_WORDS * 4)
    count = tl.minimum(step, tiles - begin)
    layout = row + 5
    here = out + slot * _FIELDS
    if KIND != _PLAIN:
        PARTS: tl.constexpr = 4 if KIND == 5 else 2 if KIND == 2 or KIND == 3 else 1
        _read(address, begin, count, nbytes, layout, here, block, KIND, PARTS, True)
    elif kind == 1:
        _read(address, begin, count, nbytes, layout, here, block, 1, 1, False)
    elif kind == 2:
        _read(address, begin, count, nbytes, layout, here, block, 2, 2, False)
    elif kind == 3:
        _read(address, begin, count, nbytes, layout, here, block, 3, 2, False)
    elif kind == 4:
        _read(address, begin, count, nbytes, layout, here, block, 4, 1, False)
    else:
        _read(address, begin, count, nbytes, layout, here, block, 0, 1, False)
