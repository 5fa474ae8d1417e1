"""The sums of `host.py` over a tile, in Triton."""

from __future__ import annotations

import triton
import triton.language as tl

from tracing.digest.host import TILE_WORDS
from tracing.digest.words import HALF

_HALF = tl.constexpr(HALF)
_WORDS = tl.constexpr(TILE_WORDS)
_GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)


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
def keys(u):  # type: ignore[no-untyped-def]
    """The keys of words u of both halves of a tile."""
    u = u.to(tl.uint32) + 1
    return _mix32(u), _mix32(u + _HALF), _mix32(u + _WORDS), _mix32(u + _WORDS + _HALF)


@triton.jit
def products(x, y, keys):  # type: ignore[no-untyped-def]
    """What words x and y of the halves of a tile add to its two sums."""
    a0, b0, a1, b1 = keys
    return (x + a0).to(tl.uint64) * (y + b0).to(tl.uint64), (x + a1).to(tl.uint64) * (y + b1).to(tl.uint64)


@triton.jit
def mixed(sums, tile):  # type: ignore[no-untyped-def]
    """What a tile adds to one of the sums of the tensor."""
    return _mix64(sums + (tile + 1).to(tl.uint64) * _GOLDEN)
