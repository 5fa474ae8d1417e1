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

from tracing.record.digest import RANGES, TILE_WORDS

FIELDS = 5 + RANGES  # of a slot, 64 bits each: sum 1, L1, NaN, inf, -0.0, then sum 0 by range
# How values are tallied. Complex ones are pairs; a float8 has no statistics here, only a digest.
KINDS = {
    torch.float32: 1,
    torch.complex64: 1,
    torch.bfloat16: 2,
    torch.float16: 3,
    torch.complex32: 3,
    torch.float64: 4,
    torch.complex128: 4,
}

_HALF = tl.constexpr(TILE_WORDS // 2)
_WORDS = tl.constexpr(TILE_WORDS)
_GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)
_FIELDS = tl.constexpr(FIELDS)


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
def _words(address, at, nbytes):  # type: ignore[no-untyped-def]
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
def _float_bits(words, KIND: tl.constexpr, HIGH: tl.constexpr):  # type: ignore[no-untyped-def]
    """The float32 patterns of the low or high halves of words (kinds 2 and 3), or of the words themselves."""
    if KIND == 2:
        bits = (words & 0xFFFF0000) if HIGH else (words << 16)
    elif KIND == 3:
        half = (words >> 16) if HIGH else (words & 0xFFFF)
        bits = half.to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32).to(tl.uint32, bitcast=True)
    else:
        bits = words
    return bits


@triton.jit
def _tally(bits, l1, top, low):  # type: ignore[no-untyped-def]
    """Sum of magnitudes; the largest, infinite or NaN if any is; 0 where a value is -0.0."""
    magnitude = bits & 0x7FFFFFFF
    l1 += magnitude.to(tl.float32, bitcast=True)
    return l1, tl.maximum(top, magnitude), tl.minimum(low, bits ^ 0x80000000)


@triton.jit  # type: ignore[untyped-decorator]
def _tally_words(words, l1, top, low, KIND: tl.constexpr):  # type: ignore[no-untyped-def]
    l1, top, low = _tally(_float_bits(words, KIND, False), l1, top, low)
    if KIND > 1:
        l1, top, low = _tally(_float_bits(words, KIND, True), l1, top, low)
    return l1, top, low


@triton.jit
def _count(bits, l1, counts):  # type: ignore[no-untyped-def]
    """Sum of finite magnitudes; NaN, inf and -0.0 counted in 10 bits each."""
    magnitude = bits & 0x7FFFFFFF
    value = tl.where(magnitude < 0x7F800000, magnitude, 0).to(tl.float32, bitcast=True)
    l1 += value.to(tl.float64)
    counts += tl.where(magnitude > 0x7F800000, 1, 0)
    counts += tl.where(magnitude == 0x7F800000, 1 << 10, 0)
    counts += tl.where(bits == 0x80000000, 1 << 20, 0)
    return l1, counts


@triton.jit
def _count_doubles(address, tile, nbytes, norm, nan, inf, zero):  # type: ignore[no-untyped-def]
    where = tile * _HALF + tl.arange(0, _HALF)
    doubles = address.to(tl.pointer_type(tl.float64)) + where
    value = tl.load(doubles, mask=where < nbytes // 8, other=0)
    magnitude = tl.abs(value)
    norm += tl.sum(tl.where(magnitude < float("inf"), magnitude, 0.0), 0)
    nan += tl.sum((value != value).to(tl.int32), 0)
    inf += tl.sum((magnitude == float("inf")).to(tl.int32), 0)
    zero += tl.sum((value.to(tl.uint64, bitcast=True) == 0x8000000000000000).to(tl.int32), 0)
    return norm, nan, inf, zero


@triton.jit  # type: ignore[untyped-decorator]
def _read(  # type: ignore[no-untyped-def]
    address, begin, count, nbytes, here, range_of_begin, a0, b0, a1, b1, KIND: tl.constexpr
):  # fmt: skip
    """Add the sums and the statistics of tiles begin ... begin + count - 1 to a slot; a, b are the keys."""
    p = tl.arange(0, _HALF)
    words = tl.multiple_of(address.to(tl.pointer_type(tl.uint32)), 16)
    total0 = tl.zeros((), tl.uint64)
    total1 = tl.zeros((), tl.uint64)
    norm = tl.zeros((), tl.float64)
    nan = tl.zeros((), tl.int64)
    inf = tl.zeros((), tl.int64)
    zero = tl.zeros((), tl.int64)
    l1 = tl.zeros((_HALF,), tl.float32)
    top = tl.zeros((_HALF,), tl.uint32)
    low = tl.full((_HALF,), 0xFFFFFFFF, tl.uint32)
    for i in range(0, count):
        tile = begin + i
        at = tile * _WORDS + p
        if (tile + 1) * _WORDS * 4 <= nbytes:
            x = tl.load(words + at)
            y = tl.load(words + at + _HALF)
        else:
            x = _words(address, at, nbytes)
            y = _words(address, at + _HALF, nbytes)
        s0 = tl.sum((x + a0).to(tl.uint64) * (y + b0).to(tl.uint64), 0)
        s1 = tl.sum((x + a1).to(tl.uint64) * (y + b1).to(tl.uint64), 0)
        position = (tile + 1).to(tl.uint64) * _GOLDEN
        total0 += _mix64(s0 + position)
        total1 += _mix64(s1 + position)
        if KIND == 4:
            norm, nan, inf, zero = _count_doubles(address, tile, nbytes, norm, nan, inf, zero)
        elif KIND > 0:
            l1, top, low = _tally_words(x, l1, top, low, KIND)
            l1, top, low = _tally_words(y, l1, top, low, KIND)
    if KIND > 0 and KIND < 4:
        if (tl.max(top, 0) < 0x71800000) & (tl.min(low, 0) > 0):  # below 2**100 no sum overflows
            norm = tl.sum(l1, 0).to(tl.float64)
        else:  # rare: read these tiles again, and count; in small steps, so as to need few registers
            q = tl.arange(0, _HALF // 4)
            few = tl.zeros((_HALF // 4,), tl.float64)
            counts = tl.zeros((_HALF // 4,), tl.int32)
            for i in range(0, 8 * count):
                again = _words(address, begin * _WORDS + i * (_HALF // 4) + q, nbytes)
                few, counts = _count(_float_bits(again, KIND, False), few, counts)
                if KIND > 1:
                    few, counts = _count(_float_bits(again, KIND, True), few, counts)
            norm = tl.sum(few, 0)
            nan = tl.sum(counts & 1023, 0).to(tl.int64)
            inf = tl.sum((counts >> 10) & 1023, 0).to(tl.int64)
            zero = tl.sum(counts >> 20, 0).to(tl.int64)
    tl.atomic_add(here + 5 + range_of_begin, total0.to(tl.int64, bitcast=True), sem="relaxed")
    tl.atomic_add(here, total1.to(tl.int64, bitcast=True), sem="relaxed")
    if KIND > 0:
        tl.atomic_add((here + 1).to(tl.pointer_type(tl.float64)), norm, sem="relaxed")
        tl.atomic_add(here + 2, nan, mask=nan > 0, sem="relaxed")
        tl.atomic_add(here + 3, inf, mask=inf > 0, sem="relaxed")
        tl.atomic_add(here + 4, zero, mask=zero > 0, sem="relaxed")


@triton.jit
def digest_kernel(  # type: ignore[no-untyped-def]
    p0, p1, p2, p3, p4, p5, p6, p7,
    table,
    out,
):  # fmt: skip
    """Add the sums of up to eight tensors to their slots.

    p0 ... p7 -- the addresses of the tensors, multiples of 16
    table     -- [8, 5] int64, of each tensor: first program, bytes, tiles of a range, kind, tiles a program
    out       -- [8, FIELDS] int64
    """
    pid = tl.program_id(0)
    # tensors start at ascending programs; one without programs starts where the next one does
    slot = tl.sum((tl.load(table + tl.arange(0, 8) * 5) <= pid).to(tl.int32), 0) - 1
    address = p0
    address = tl.where(slot == 1, p1, address)
    address = tl.where(slot == 2, p2, address)
    address = tl.where(slot == 3, p3, address)
    address = tl.where(slot == 4, p4, address)
    address = tl.where(slot == 5, p5, address)
    address = tl.where(slot == 6, p6, address)
    address = tl.where(slot == 7, p7, address)
    first = tl.load(table + slot * 5)
    nbytes = tl.load(table + slot * 5 + 1)
    block = tl.load(table + slot * 5 + 2)
    kind = tl.load(table + slot * 5 + 3)
    step = tl.load(table + slot * 5 + 4)
    begin = (pid - first) * step
    tiles = (nbytes + _WORDS * 4 - 1) // (_WORDS * 4)
    count = tl.minimum(step, tiles - begin)
    here = out + slot * _FIELDS
    u = tl.arange(0, _HALF).to(tl.uint32)
    a0 = _mix32(u + 1)
    b0 = _mix32(u + 1 + _HALF)
    a1 = _mix32(u + 1 + _WORDS)
    b1 = _mix32(u + 1 + _WORDS + _HALF)
    if kind == 1:
        _read(address, begin, count, nbytes, here, begin // block, a0, b0, a1, b1, 1)
    elif kind == 2:
        _read(address, begin, count, nbytes, here, begin // block, a0, b0, a1, b1, 2)
    elif kind == 3:
        _read(address, begin, count, nbytes, here, begin // block, a0, b0, a1, b1, 3)
    elif kind == 4:
        _read(address, begin, count, nbytes, here, begin // block, a0, b0, a1, b1, 4)
    else:
        _read(address, begin, count, nbytes, here, begin // block, a0, b0, a1, b1, 0)
