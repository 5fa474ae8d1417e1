"""The digest of `host.py` as a Triton kernel: up to eight tensors in one launch, one read of memory.

A program reads some tiles of one tensor and adds their sums to that tensor's slot. Additions of integers
commute, so the order in which programs finish does not matter; the L1 norm is a sum of float64 in that
order, and its last digits may vary.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tracing.digest.across import read_across, read_whole
from tracing.digest.columns import RANGES
from tracing.digest.host import TILE_WORDS
from tracing.digest.special import add_counts, is_special, recount
from tracing.digest.statistics import tally, tally_doubles
from tracing.digest.sums import keys, mixed, products
from tracing.digest.words import HALF, tile_halves, whole_halves

FIELDS = 5 + RANGES  # of a slot, 64 bits each: sum 1, L1, NaN, inf, -0.0, then sum 0 by range
ANY = -1  # KIND: several
SHORT, AHEAD, ACROSS, WHOLE = 0, 1, 3, 5  # READING; any other is the bytes of a unit

_HALF = tl.constexpr(HALF)
_WORDS = tl.constexpr(TILE_WORDS)
_STAGES = tl.constexpr(3)  # of a tile, from its reading to its sums: measured on an H200
_AHEAD, _ACROSS, _WHOLE = tl.constexpr(AHEAD), tl.constexpr(ACROSS), tl.constexpr(WHOLE)


@triton.jit
def _both(a0, a1, b0, b1):  # type: ignore[no-untyped-def]
    return a0 + b0, a1 + b1


@triton.jit  # type: ignore[untyped-decorator]
def _added(  # type: ignore[no-untyped-def]
    x, y, own, tile, values, total0, total1, l1, low, KIND: tl.constexpr, PARTS: tl.constexpr
):
    """Add a tile, whose halves are x and y, to the sums and the statistics."""
    products0, products1 = products(x, y, own)
    sum0, sum1 = tl.reduce((products0, products1), 0, _both)
    total0 += mixed(sum0, tile)
    total1 += mixed(sum1, tile)
    if KIND == 4:
        l1, low = tally_doubles(x, l1, low)
        l1, low = tally_doubles(y, l1, low)
    elif KIND > 0:
        l1, low = tally(x, values, l1, low, KIND, PARTS)
        l1, low = tally(y, values, l1, low, KIND, PARTS)
    return total0, total1, l1, low


@triton.jit  # type: ignore[untyped-decorator]
def _read(  # type: ignore[no-untyped-def]
    address, begin, count, nbytes, layout, values, here, block, KIND: tl.constexpr, PARTS: tl.constexpr,
    READING: tl.constexpr,
):  # fmt: skip
    """Add the sums and the statistics of tiles begin:begin+count of a tensor to its slot."""
    UNIT: tl.constexpr = 0 if READING <= _AHEAD else READING
    own = keys(tl.arange(0, _HALF))
    total0 = tl.zeros((), tl.uint64)
    total1 = tl.zeros((), tl.uint64)
    WIDE: tl.constexpr = _HALF // 2 if KIND == 4 else _HALF
    l1 = tl.zeros((WIDE,), tl.float64 if KIND == 4 else tl.float32)
    low = tl.zeros((WIDE,), tl.int32)
    whole = tl.minimum(count, nbytes // (_WORDS * 4) - begin) if READING == _AHEAD else 0
    for i in tl.range(0, whole, num_stages=_STAGES):
        x, y = whole_halves(address, begin + i)
        total0, total1, l1, low = _added(x, y, own, begin + i, values, total0, total1, l1, low, KIND, PARTS)
    STAGES: tl.constexpr = _STAGES if READING == 16 else 1
    for i in tl.range(whole, count, num_stages=STAGES):
        x, y = tile_halves(address, begin + i, nbytes, layout, UNIT)
        total0, total1, l1, low = _added(x, y, own, begin + i, values, total0, total1, l1, low, KIND, PARTS)
    tl.atomic_add(here + 5 + begin // block, total0.to(tl.int64, bitcast=True), sem="relaxed")
    tl.atomic_add(here, total1.to(tl.int64, bitcast=True), sem="relaxed")
    if KIND > 0:
        norm = tl.sum(l1, 0).to(tl.float64)
        if is_special(norm, tl.min(low, 0)):
            norm, counts = recount(address, begin, count, nbytes, layout, values, KIND, PARTS, UNIT)
            add_counts(here, counts)
        tl.atomic_add((here + 1).to(tl.pointer_type(tl.float64)), norm, sem="relaxed")


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
                 several tiles. ACROSS, WHOLE: long rows that are adjacent in memory; a program reads some
                 tiles of 16 rows, and `steps` are the programs for them. WHOLE: aligned ones of whole
                 tiles. Otherwise tensors that are read through their strides, in units of this many bytes
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
        read_across(address, program, step, nbytes, layout, values, here, block, KIND, PARTS)
    elif READING == _WHOLE:
        read_whole(address, program, step, nbytes, layout, values, here, block, KIND, PARTS)
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
