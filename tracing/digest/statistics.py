"""The L1 norm of the values in a tensor's words, and whether some may be NaN, inf or -0.0."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

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


@triton.jit  # type: ignore[untyped-decorator]
def float_bits(words, values, KIND: tl.constexpr, PART: tl.constexpr):  # type: ignore[no-untyped-def]
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
def tally(words, values, l1, low, KIND: tl.constexpr, PARTS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sum of magnitudes, infinite or NaN if any is; the least as signed integers, which -0.0 is."""
    for part in tl.static_range(PARTS):
        bits = float_bits(words, values, KIND, part)
        l1 += tl.abs(bits.to(tl.float32, bitcast=True))
        low = tl.minimum(low, bits.to(tl.int32, bitcast=True))
    return l1, low


@triton.jit
def doubles(words):  # type: ignore[no-untyped-def]
    """The low and the high words of the doubles in a block of words."""
    return tl.split(tl.reshape(words, (words.shape[0] // 2, 2)))


@triton.jit
def tally_doubles(words, l1, low):  # type: ignore[no-untyped-def]
    """As `tally`; of the least the high word, which a double near -0.0 has, too."""
    less, more = doubles(words)
    l1 += tl.abs(((more.to(tl.uint64) << 32) | less).to(tl.float64, bitcast=True))
    return l1, tl.minimum(low, more.to(tl.int32, bitcast=True))
