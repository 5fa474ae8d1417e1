"""The digest of `host.py` as a Triton kernel: up to eight tensors in one launch, one read of memory.

A program reads some tiles of one tensor and adds their sums to that tensor's slot. Additions of integers
commute, so the order in which programs finish does not matter; the L1 norm is a sum of float64 in that
order, and its last digits may vary.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tracing.digest.columns import RANGES
from tracing.digest.host import TILE_WORDS
from tracing.digest.layouts import ROWS_ACROSS
from tracing.digest.statistics import count_special, count_special_doubles, tally, tally_doubles
from tracing.digest.words import (
    HALF,
    column_words,
    last_words,
    scattered_words,
    tile_halves,
    whole_halves,
)

FIELDS = 5 + RANGES  # of a slot, 64 bits each: sum 1, L1, NaN, inf, -0.0, then sum 0 by range
ANY = -1  # KIND: several
SHORT, AHEAD, ACROSS = 0, 1, 3  # READING; any other is the bytes of a unit

_HALF = tl.constexpr(HALF)
_WORDS = tl.constexpr(TILE_WORDS)
_GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)
_STEP = tl.constexpr(TILE_WORDS // 8)  # words at a time where registers are short
_STAGES = tl.constexpr(3)  # of a tile, from its reading to its sums: measured on an H200
_ACROSS = tl.constexpr(ACROSS)
_AHEAD = tl.constexpr(AHEAD)
_TOGETHER = tl.constexpr(ROWS_ACROSS)
_WIDE = tl.constexpr(64)  # words of each of these tiles at a time
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
def _both(a0, a1, b0, b1):  # type: ignore[no-untyped-def]
    return a0 + b0, a1 + b1


@triton.jit
def _keys(u):  # type: ignore[no-untyped-def]
    """The keys of words u of both halves of a tile."""
    u = u.to(tl.uint32) + 1
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
def _added(  # type: ignore[no-untyped-def]
    x, y, keys, tile, values, total0, total1, l1, low, KIND: tl.constexpr, PARTS: tl.constexpr
):
    """Add a tile, whose halves are x and y, to the sums and the statistics."""
    total0, total1 = _hashed(x, y, keys, tile, total0, total1)
    if KIND == 4:
        l1, low = tally_doubles(x, l1, low)
        l1, low = tally_doubles(y, l1, low)
    elif KIND > 0:
        l1, low = tally(x, values, l1, low, KIND, PARTS)
        l1, low = tally(y, values, l1, low, KIND, PARTS)
    return total0, total1, l1, low


@triton.jit  # type: ignore[untyped-decorator]
def _recount(  # type: ignore[no-untyped-def]
    address, begin, stride, count, nbytes, layout, values, KIND: tl.constexpr, PARTS: tl.constexpr,
    UNIT: tl.constexpr,
):  # fmt: skip
    """Reread tiles begin, begin + stride, ...: the sum of finite magnitudes, and counts of the others."""
    WIDE: tl.constexpr = _STEP // 2 if KIND == 4 else _STEP
    PIECES: tl.constexpr = _WORDS // _STEP
    l1 = tl.zeros((WIDE,), tl.float64)
    counts = tl.zeros((WIDE,), tl.int32)
    for i in range(0, count * PIECES):
        first = (begin + i // PIECES * stride) * _WORDS + i % PIECES * _STEP
        if UNIT > 0:
            words = scattered_words(address, first, nbytes, layout, _STEP, UNIT)
        else:
            words = last_words(address, first + tl.arange(0, _STEP), nbytes)
        if KIND == 4:
            l1, counts = count_special_doubles(words, l1, counts)
        else:
            l1, counts = count_special(words, values, l1, counts, KIND, PARTS)
    return tl.sum(l1, 0), counts


@triton.jit  # type: ignore[untyped-decorator]
def _tally_ends(  # type: ignore[no-untyped-def]
    here, norm, low, address, begin, stride, count, nbytes, layout, values, KIND: tl.constexpr,
    PARTS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Add the norm of some tiles to a slot; NaN, inf, a sum that overflows and -0.0 need a second reading."""
    norm = norm.to(tl.float64)
    if (norm != norm) | (norm == float("inf")) | (low == _LEAST):
        norm, counts = _recount(address, begin, stride, count, nbytes, layout, values, KIND, PARTS, UNIT)
        tl.atomic_add(here + 2, tl.sum(counts & 1023, 0).to(tl.int64), sem="relaxed")
        tl.atomic_add(here + 3, tl.sum((counts >> 10) & 1023, 0).to(tl.int64), sem="relaxed")
        tl.atomic_add(here + 4, tl.sum(counts >> 20, 0).to(tl.int64), sem="relaxed")
    tl.atomic_add((here + 1).to(tl.pointer_type(tl.float64)), norm, sem="relaxed")


@triton.jit  # type: ignore[untyped-decorator]
def _read(  # type: ignore[no-untyped-def]
    address, begin, count, nbytes, layout, values, here, block, KIND: tl.constexpr, PARTS: tl.constexpr,
    READING: tl.constexpr,
):  # fmt: skip
    """Add the sums and the statistics of tiles begin:begin+count of a tensor to its slot."""
    UNIT: tl.constexpr = 0 if READING <= _AHEAD else READING
    keys = _keys(tl.arange(0, _HALF))
    total0 = tl.zeros((), tl.uint64)
    total1 = tl.zeros((), tl.uint64)
    WIDE: tl.constexpr = _HALF // 2 if KIND == 4 else _HALF
    l1 = tl.zeros((WIDE,), tl.float64 if KIND == 4 else tl.float32)
    low = tl.zeros((WIDE,), tl.int32)
    whole = tl.minimum(count, nbytes // (_WORDS * 4) - begin) if READING == _AHEAD else 0
    for i in tl.range(0, whole, num_stages=_STAGES):
        x, y = whole_halves(address, begin + i)
        total0, total1, l1, low = _added(x, y, keys, begin + i, values, total0, total1, l1, low, KIND, PARTS)
    STAGES: tl.constexpr = _STAGES if READING == 16 else 1
    for i in tl.range(whole, count, num_stages=STAGES):
        x, y = tile_halves(address, begin + i, nbytes, layout, UNIT)
        total0, total1, l1, low = _added(x, y, keys, begin + i, values, total0, total1, l1, low, KIND, PARTS)
    tl.atomic_add(here + 5 + begin // block, total0.to(tl.int64, bitcast=True), sem="relaxed")
    tl.atomic_add(here, total1.to(tl.int64, bitcast=True), sem="relaxed")
    if KIND > 0:
        norm, least = tl.sum(l1, 0), tl.min(low, 0)
        _tally_ends(here, norm, least, address, begin, 1, count, nbytes, layout, values, KIND, PARTS, UNIT)


@triton.jit  # type: ignore[untyped-decorator]
def _read_across(  # type: ignore[no-untyped-def]
    address, program, stride, nbytes, layout, values, here, block, KIND: tl.constexpr, PARTS: tl.constexpr
):
    """Add the sums and the statistics of the tiles that contain the same columns of some rows to a slot.

    stride -- the tiles of a row
    """
    UNIT: tl.constexpr = 4 if KIND == 1 else 2
    PER: tl.constexpr = 4 // UNIT  # elements of a word
    step = layout[6]  # between columns
    rows = (program // stride).to(tl.uint32) * _TOGETHER + tl.arange(0, _TOGETHER)
    column = (program % stride).to(tl.uint32) * (_WORDS * PER)
    sums0 = tl.zeros((_WIDE, _TOGETHER), tl.uint64)
    sums1 = tl.zeros((_WIDE, _TOGETHER), tl.uint64)
    l1 = tl.zeros((_WIDE, _TOGETHER), tl.float32)
    low = tl.zeros((_WIDE, _TOGETHER), tl.int32)
    for i in tl.range(0, _HALF // _WIDE, num_stages=_STAGES):
        u = (i * _WIDE + tl.arange(0, _WIDE)).to(tl.uint32)
        x = column_words(address, rows, column + u * PER, step, UNIT)
        y = column_words(address, rows, column + (u + _HALF) * PER, step, UNIT)
        a0, b0, a1, b1 = _keys(u)
        sums0 += (x + a0[:, None]).to(tl.uint64) * (y + b0[:, None]).to(tl.uint64)
        sums1 += (x + a1[:, None]).to(tl.uint64) * (y + b1[:, None]).to(tl.uint64)
        l1, low = tally(x, values, l1, low, KIND, PARTS)
        l1, low = tally(y, values, l1, low, KIND, PARTS)
    begin = program // stride * (stride * _TOGETHER) + program % stride
    tiles = begin + tl.arange(0, _TOGETHER) * stride
    position = (tiles + 1).to(tl.uint64) * _GOLDEN
    total0 = _mix64(tl.sum(sums0, 0) + position)
    total1 = tl.sum(_mix64(tl.sum(sums1, 0) + position), 0)
    tl.atomic_add(here + 5 + tiles // block, total0.to(tl.int64, bitcast=True), sem="relaxed")
    tl.atomic_add(here, total1.to(tl.int64, bitcast=True), sem="relaxed")
    norm, least = tl.sum(tl.sum(l1, 0), 0), tl.min(tl.min(low, 0), 0)
    _tally_ends(
        here, norm, least, address, begin, stride, _TOGETHER, nbytes, layout, values, KIND, PARTS, UNIT
    )


@triton.jit
def _of(slot, column):  # type: ignore[no-untyped-def]
    """The value of one tensor in a column."""
    value = column[0]
    for i in tl.static_range(1, len(column)):
        value = tl.where(slot == i, column[i], value)
    return value


@triton.jit
def _layout_of(slot, columns):  # type: ignore[no-untyped-def]
    """3 sizes, 4 strides and whether rows are long."""
    n1, n2, n3 = _of(slot, columns[0]), _of(slot, columns[1]), _of(slot, columns[2])
    s0, s1 = _of(slot, columns[3]), _of(slot, columns[4])
    s2, s3 = _of(slot, columns[5]), _of(slot, columns[6])
    sizes = n1.to(tl.uint32), n2.to(tl.uint32), n3.to(tl.uint32)
    strides = s0.to(tl.uint32), s1.to(tl.uint32), s2.to(tl.uint32), s3.to(tl.uint32)
    return sizes + strides + (_of(slot, columns[7]),)


@triton.jit  # type: ignore[untyped-decorator]
def digest_kernel(  # type: ignore[no-untyped-def]
    addresses,
    outs,
    firsts,
    sizes,
    blocks,
    kinds,
    steps,
    layouts,
    meanings,
    KIND: tl.constexpr,
    READING: tl.constexpr,
):
    """Add the sums of up to eight tensors to their slots.

    addresses -- [8] of the tensors. These columns are passed by value: memory would have to be read first
    outs      -- [8] addresses of slots: [FIELDS] int64
    firsts    -- [8] the first program that reads each tensor
    sizes     -- [8] bytes
    blocks    -- [8] tiles of a range
    kinds     -- [8] of the values, see `statistics.KINDS`
    steps     -- [8] tiles a program
    layouts   -- 8 columns: 3 sizes, 4 strides, whether rows are long
    meanings  -- [8] addresses of [256] float32, what each byte of kind 5 means
                 kinds, layouts and meanings are None where KIND and READING do not need them
    KIND      -- of all these tensors; ANY: contiguous ones of any kind but 5
    READING   -- SHORT, AHEAD: contiguous tensors. AHEAD starts later, and is faster where a program reads
                 several tiles. ACROSS: matrices whose rows are adjacent in memory; a program reads the same
                 tile of 16 rows, and `steps` are the tiles of a row. Otherwise tensors that are read through
                 their strides, in units of this many bytes
    """
    pid = tl.program_id(0)
    slot = 0  # tensors start at ascending programs; one without programs starts where the next one does
    for i in tl.static_range(1, len(firsts)):
        slot += (firsts[i] <= pid).to(tl.int32)
    address, nbytes, block = _of(slot, addresses), _of(slot, sizes), _of(slot, blocks)
    step = _of(slot, steps)
    kind = KIND if KIND >= 0 else _of(slot, kinds)
    layout = 0 if READING <= _AHEAD else _layout_of(slot, layouts)
    values = _of(slot, meanings).to(tl.pointer_type(tl.uint32)) if KIND == 5 else 0
    program = pid - _of(slot, firsts)
    begin = program * step
    count = tl.minimum(step, (nbytes + _WORDS * 4 - 1) // (_WORDS * 4) - begin)
    here = _of(slot, outs).to(tl.pointer_type(tl.int64))
    PARTS: tl.constexpr = 4 if KIND == 5 else 2 if KIND == 2 or KIND == 3 else 1
    if READING == _ACROSS:
        _read_across(address, program, step, nbytes, layout, values, here, block, KIND, PARTS)
    elif KIND >= 0:
        _read(address, begin, count, nbytes, layout, values, here, block, KIND, PARTS, READING)
    elif kind == 1:
        _read(address, begin, count, nbytes, layout, values, here, block, 1, 1, READING)
    elif kind == 2:
        _read(address, begin, count, nbytes, layout, values, here, block, 2, 2, READING)
    elif kind == 3:
        _read(address, begin, count, nbytes, layout, values, here, block, 3, 2, READING)
    elif kind == 4:
        _read(address, begin, count, nbytes, layout, values, here, block, 4, 1, READING)
    else:
        _read(address, begin, count, nbytes, layout, values, here, block, 0, 1, READING)
