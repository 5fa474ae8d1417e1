"""A digest changes with every change of bits or positions, and with nothing else."""

from __future__ import annotations

import struct

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from tracing.digest import host as formula
from tracing.digest.columns import RANGES, TILE_BYTES
from tracing.digest.host import digest


def bits(tensor: torch.Tensor) -> str:
    return formula.bits(tensor)[0]


BYTES = st.binary(min_size=1, max_size=200)


def tensor(data: bytes) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(data, np.uint8).copy())


@hypothesis.given(BYTES, st.integers(0, 10**6))
def test_one_bit_changes_the_digest(data: bytes, where: int) -> None:
    changed = bytearray(data)
    changed[where // 8 % len(data)] ^= 1 << where % 8

    assert bits(tensor(data)) != bits(tensor(bytes(changed)))


@hypothesis.given(BYTES, st.randoms())
def test_a_permutation_changes_the_digest_if_it_changes_the_bytes(data: bytes, random: object) -> None:
    shuffled = list(data)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert (bits(tensor(data)) == bits(tensor(bytes(shuffled)))) == (bytes(shuffled) == data)


@hypothesis.given(BYTES)
def test_trailing_zeros_change_the_digest(data: bytes) -> None:
    assert bits(tensor(data)) != bits(tensor(data + b"\0"))


def mix(x: int, size: int, shifts: tuple[int, int, int], factors: tuple[int, int]) -> int:
    for shift, factor in zip(shifts[:2], factors, strict=True):
        x = (x ^ x >> shift) * factor % 2**size
    return x ^ x >> shifts[2]


def mix32(x: int) -> int:
    return mix(x, 32, (16, 13, 16), (0x85EBCA6B, 0xC2B2AE35))


def mix64(x: int) -> int:
    return mix(x % 2**64, 64, (33, 33, 33), (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53))


def reference(data: bytes) -> str:
    """The formula of tracing/digest/host.py in integers, one word at a time."""
    padded = data + b"\0" * (-len(data) % 8192)
    words = struct.unpack(f"<{len(padded) // 4}I", padded)
    halves = []
    for h in range(2):
        total = 0
        for tile in range(len(words) // 2048):
            x = words[2048 * tile : 2048 * (tile + 1)]
            keys = [mix32(1 + 2048 * h + p) for p in range(2048)]
            added = [(word + key) % 2**32 for word, key in zip(x, keys, strict=True)]
            total += mix64(
                sum(a * b for a, b in zip(added[:1024], added[1024:], strict=True))
                + 0x9E3779B97F4A7C15 * (tile + 1)
            )
        halves.append(mix64(total + mix64(2 * len(data) + 1 + h)))
    return "".join(f"{half:016x}" for half in halves)


@pytest.mark.parametrize("size", [0, 1, 5, 8192, 40001])
def test_the_formula_is_the_documented_one(size: int) -> None:
    """A digest on disk must mean the same on every device and in every later version."""
    data = torch.randint(256, (size,), dtype=torch.uint8, generator=torch.Generator().manual_seed(size))

    assert bits(data) == reference(data.numpy().tobytes())


@pytest.mark.parametrize("rows", [(0, 1), (0, 700)])
def test_swapped_rows_of_an_identity_matrix_change_the_digest(rows: tuple[int, int]) -> None:
    eye = torch.eye(1024)
    swapped = eye.clone()
    swapped[list(rows)] = eye[list(rows[::-1])]

    assert bits(eye) != bits(swapped)


def test_swapped_pairs_of_equal_elements_change_the_digest() -> None:
    words = torch.zeros(2 * TILE_BYTES // 4, dtype=torch.int32)
    other = words.clone()
    words[0], words[TILE_BYTES // 4] = 1, 2
    other[0], other[TILE_BYTES // 4] = 2, 1

    assert bits(words) != bits(other)


@pytest.mark.parametrize(("a", "b"), [(0.0, -0.0), (1.0, -1.0)])
def test_a_sign_changes_the_digest(a: float, b: float) -> None:
    assert bits(torch.tensor([a, 2.0])) != bits(torch.tensor([b, 2.0]))


def test_two_signs_flipped_together_change_the_digest() -> None:
    x = torch.rand(5000, dtype=torch.float64)

    assert bits(x) != bits(-x)


def test_a_nan_equals_itself_and_differs_by_payload() -> None:
    nan = torch.tensor([0x7FC00000], dtype=torch.int32).view(torch.float32)
    other = torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32)

    assert bits(nan) == bits(nan.clone())
    assert bits(nan) != bits(other)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7, 5), (4097,), (3, 5, 4099)])
def test_equal_values_in_different_layouts_have_one_digest(shape: tuple[int, ...]) -> None:
    x = torch.rand(shape)
    strided = torch.empty((*shape, 2))[..., 0].copy_(x)
    axes = tuple(reversed(range(x.ndim)))
    transposed = x.permute(axes).contiguous().permute(axes)

    assert digest(x) == digest(strided) == digest(transposed)


def test_an_expanded_tensor_has_the_digest_of_its_copy() -> None:
    x = torch.rand(3, 1).expand(3, 9)

    assert bits(x) == bits(x.contiguous())


DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32,
    torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex32,
    torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz, torch.float8_e8m0fnu, torch.float4_e2m1fn_x2, torch.int4, torch.uint4,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_has_a_digest_of_its_bytes(dtype: torch.dtype) -> None:
    raw = torch.arange(1, 97, dtype=torch.uint8)

    assert digest(raw.view(dtype)).bits == bits(raw)


def test_a_conjugate_view_is_digested_by_value() -> None:
    x = torch.rand(5, dtype=torch.complex64)

    assert digest(x.conj()) == digest(x.conj().resolve_conj())
    assert digest(x.conj()) != digest(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e5m2])
def test_nan_inf_and_negative_zero_are_counted_and_the_norm_is_of_the_finite_rest(dtype: torch.dtype) -> None:
    result = digest(torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, -2.0, 1.0]).to(dtype))

    assert (result.nan, result.inf, result.negative_zero, result.l1) == (1, 2, 1, 3.0)


@pytest.mark.parametrize("tiles", [1, 2, 15, 16, 17, 40])
def test_the_ranges_of_a_digest_locate_the_difference_of_two_tensors(tiles: int) -> None:
    a = torch.zeros(tiles * TILE_BYTES // 4)
    b = a.clone()
    b[-1] = 1.0

    one, other = digest(a).tiles, digest(b).tiles

    assert len(one) == len(other) <= 3 * RANGES
    assert [i for i in range(0, len(one), 3) if one[i : i + 3] != other[i : i + 3]] == [len(one) - 3]


def test_a_tensor_whose_storage_was_freed_is_refused() -> None:
    x = torch.ones(4)
    x.untyped_storage().resize_(0)

    with pytest.raises(RuntimeError, match="its storage was freed"):
        digest(x)


def test_a_tensor_that_was_digested_can_be_resized_as_before() -> None:
    x = torch.ones(4)
    digest(x)

    assert x.resize_(1000).shape == (1000,)
