"""Decide whether two tensors have the same bits: a 128-bit digest that every device computes equally.

The elements' bytes in logical (row-major) order are read as little-endian 32-bit words, padded with
zeros to tiles of 2048 words. A tile of words x[0..1023], y[0..1023] has two sums modulo 2**64,

    s[h] = sum over p of (x[p] + a[h][p]) * (y[p] + b[h][p])        h = 0, 1

where the inner additions are modulo 2**32 and the keys a, b are derived from h and p only. This is
NH, the multiply-add hash of UMAC: two different tiles agree in one sum with probability 2**-32 for
random keys, in both with 2**-64. The digest of the tensor is, for each h, the sum over the tiles t of
mix(s[h] + C * (t + 1)), mixed once more with the number of bytes. Sums commute, so a device may visit
tiles in any order; keys differ by position, so permutations, transposes and sign flips are seen.

The sums over up to 8 ranges of tiles, mixed and cut to 12 bits, are kept as `tiles`: they locate
a difference between two tensors.

It is not a cryptographic hash: collisions can be constructed.

Source: J. Black, S. Halevi, H. Krawczyk, T. Krovetz, P. Rogaway, "UMAC: Fast and Secure Message
Authentication", CRYPTO 1999 (NH); A. Appleby, MurmurHash3 (the 32- and 64-bit finalizers).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from tracing.digest.columns import RANGES, TILE_BYTES, block_tiles, blocks
from tracing.model import Digest

Words = npt.NDArray[np.uint32]
Sums = npt.NDArray[np.uint64]

TILE_WORDS = TILE_BYTES // 4
GOLDEN = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio: spreads consecutive integers
LARGEST = float(np.finfo(np.float64).max)  # an L1 norm beyond it; JSON knows no infinity
_THREE = np.array([f"{i:03x}" for i in range(1 << 12)], "S3")
_NATIVE = {torch.float16: np.float16, torch.float32: np.float32, torch.float64: np.float64}
_NO_VALUES = {torch.float4_e2m1fn_x2, torch.float8_e8m0fnu}  # packed pairs, and bare exponents
_LEAST = -16  # exponent of the least norm that is rounded
_POWERS = np.array([float(f"1e{exponent}") for exponent in range(_LEAST, 309)])
_CHUNK = 32  # tiles at a time: the intermediate products stay in the second-level cache
_FLOATS = 1 << 15  # elements at a time


def mix32(x: Words) -> Words:
    """MurmurHash3's 32-bit finalizer, a bijection of [n] uint32."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    mixed: Words = x ^ (x >> np.uint32(16))
    return mixed


def mix64(x: Sums) -> Sums:
    """MurmurHash3's 64-bit finalizer, a bijection of [n] uint64."""
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    mixed: Sums = x ^ (x >> np.uint64(33))
    return mixed


_KEYS = mix32(np.arange(1, 2 * TILE_WORDS + 1, dtype=np.uint32)).reshape(2, 2, TILE_WORDS // 2)


def tile_sums(words: Words) -> Sums:
    """The two sums of every tile: [n * 2048] words to [n, 2]."""
    tiles = words.reshape(-1, 2, TILE_WORDS // 2)
    sums = np.empty((len(tiles), 2), np.uint64)
    for start in range(0, len(tiles), _CHUNK):
        chunk = tiles[start : start + _CHUNK]
        for h in range(2):
            pairs = (chunk + _KEYS[h]).astype(np.uint64)
            sums[start : start + len(chunk), h] = np.einsum("tp,tp->t", pairs[:, 0], pairs[:, 1])
    return sums


def combine(sums: Sums, nbytes: int) -> tuple[str, str]:
    """Digest and `tiles` of a tensor of `nbytes` bytes from the [tiles, 2] sums of its tiles."""
    position = np.arange(1, len(sums) + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    mixed = mix64(sums + position[:, None])
    ranges = np.zeros((1, RANGES), np.uint64)
    starts = np.arange(0, len(sums), block_tiles(nbytes))
    if len(starts):
        ranges[0, : len(starts)] = np.add.reduceat(mixed[:, 0], starts)
    total = mixed[:, 1].sum(dtype=np.uint64)
    return finish(ranges, np.array([total]), np.array([nbytes]), np.array([blocks(nbytes)]))


def finish(
    ranges: Sums, second: Sums, nbytes: npt.NDArray[np.int64], count: npt.NDArray[np.int64]
) -> tuple[str, str]:
    """Digests and `tiles` of n tensors, each as one string.

    ranges -- [n, RANGES] for h = 0, the sum over the tiles of each range
    second -- [n] for h = 1, the sum over all tiles
    nbytes -- [n] the size of each tensor
    count  -- [n] how many ranges each has
    """
    sizes = nbytes.astype(np.uint64)[:, None] * np.uint64(2) + np.array([1, 2], np.uint64)
    totals = np.stack([ranges.sum(axis=1, dtype=np.uint64), second], axis=1)
    bits = mix64(totals + mix64(sizes)).astype(">u8").tobytes().hex()
    there = ranges[np.arange(RANGES) < count[:, None]]
    return bits, _THREE[mix64(there) >> np.uint64(52)].tobytes().decode()


def element_bytes(tensor: torch.Tensor) -> npt.NDArray[np.uint8]:
    """The bytes of the elements in logical order, on the host; a copy if the layout requires one."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if plain.numel() and not plain.untyped_storage().nbytes():
        raise RuntimeError("its storage was freed")  # as FSDP frees that of parameters
    flat = plain.as_strided((plain.numel(),), (1,))  # a lone element may keep any stride through contiguous()
    flat = flat.view(torch.uint8).cpu()
    return memory(flat.data_ptr(), flat.numel(), flat)


class _Array:
    def __init__(self, address: int, nbytes: int, owner: object) -> None:
        self.owner = owner
        data = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1"}
        self.__array_interface__ = {"version": 3, **data}


def memory(address: int, nbytes: int, owner: object) -> npt.NDArray[np.uint8]:
    """A view of host memory; `owner` keeps it alive.

    Unlike with Tensor.numpy(), the program may still resize the tensor.
    """
    return np.asarray(_Array(address, nbytes, owner)) if nbytes else np.empty(0, np.uint8)


def bits(tensor: torch.Tensor) -> tuple[str, str]:
    """Digest (32 hexadecimal digits) and `tiles` of a tensor's elements, of any dtype, stride and device."""
    return bits_of(element_bytes(tensor))


def bits_of(data: npt.NDArray[np.uint8]) -> tuple[str, str]:
    """Digest and `tiles` of [n] bytes."""
    whole = len(data) - len(data) % TILE_BYTES
    rest = np.zeros(TILE_BYTES if whole < len(data) else 0, np.uint8)
    rest[: len(data) - whole] = data[whole:]
    parts = [tile_sums(part.view(np.uint32)) for part in (data[:whole], rest)]
    return combine(np.concatenate(parts), len(data))


def _host_floats(tensor: torch.Tensor) -> npt.NDArray[np.floating]:
    # NumPy has neither bfloat16 nor float8; each is exact in float32
    plain = tensor.detach().resolve_conj().resolve_neg().cpu()
    plain = torch.view_as_real(plain) if plain.is_complex() else plain
    native = _NATIVE.get(plain.dtype)
    return element_bytes(plain).view(native) if native else element_bytes(plain.float()).view(np.float32)


def _statistics(values: npt.NDArray[np.floating]) -> tuple[int, int, int, float]:
    # NaN, inf, -0.0, L1 of one chunk: a finite sum proves that there is neither NaN nor inf
    magnitude = np.abs(values)
    zeros = int(np.count_nonzero(np.signbit(values) & (values == 0)))
    l1 = float(magnitude.sum(dtype=np.float64))
    if np.isfinite(l1):
        return 0, 0, zeros, l1
    finite = np.isfinite(values)
    l1 = float(magnitude[finite].sum(dtype=np.float64))
    return int(np.isnan(values).sum()), int(np.isinf(values).sum()), zeros, l1


def digest(tensor: torch.Tensor) -> Digest:
    """Digest one tensor.

    tensor -- [*] any dtype, stride and device; shape and dtype are not part of the digest

    Time: about 0.6 ns a byte on one core, and 0.3 ns more for the statistics of a floating dtype.
    The compiled form, tracing/native/host_digest.h, gives the same bits, and the same norm to six digits.
    Memory: one copy of the tensor if it is not contiguous or not on the host, or is narrower than float16.
    """
    name, tiles = bits(tensor)
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.dtype in _NO_VALUES:
        return Digest(name, tiles)
    values = _host_floats(tensor)
    with np.errstate(over="ignore", invalid="ignore"):  # uninitialised memory may hold anything
        parts = [_statistics(values[i : i + _FLOATS]) for i in range(0, len(values), _FLOATS)]
    nan, inf, zeros, l1 = (sum(column) for column in zip(*parts, strict=True)) if parts else (0, 0, 0, 0.0)
    return Digest(name, tiles, nan, inf, zeros, float(rounded(np.array([l1]))[0]))


def nonfinite(elements: npt.NDArray[np.uint8], dtype: torch.dtype) -> tuple[int, int]:
    """How many NaN and inf are among [n, bytes of one] elements; none of a dtype that has no such values."""
    if not elements.size or not (dtype.is_floating_point or dtype.is_complex) or dtype in _NO_VALUES:
        return 0, 0
    values = _host_floats(torch.from_numpy(elements.reshape(-1).copy()).view(dtype))
    return int(np.isnan(values).sum()), int(np.isinf(values).sum())


def rounded(norms: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """[n] norms rounded to six digits, for display; the largest number for infinity.

    The compiled form gives the same bits: both use the correctly rounded operations of IEEE 754 only.
    """
    finite = np.minimum(norms, LARGEST)
    exponent = np.searchsorted(_POWERS, finite, side="right") - 1 + _LEAST
    scale = _POWERS[np.abs(np.maximum(exponent, _LEAST) - 5) - _LEAST]
    with np.errstate(over="ignore"):  # of the branch that is not chosen
        short = np.where(exponent <= 5, np.rint(finite * scale) / scale, np.rint(finite / scale) * scale)
    whole: npt.NDArray[np.float64] = np.where(exponent >= _LEAST, short, finite)
    return whole
