"""The bytes that tensors occupy and share, checked against torch."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from tracing.launch.memory.occupied_mask import occupied
from tracing.model import TensorMeta
from tracing.views import dense, extent, occupied_bytes, relation, row_major, same_digest


def meta_of(tensor: torch.Tensor) -> TensorMeta:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorMeta(tuple(tensor.shape), tuple(tensor.stride()), dtype, "cpu", int(tensor.storage_offset()))


@st.composite
def views(draw: st.DrawFn) -> torch.Tensor:
    """A view of one storage of 64 bytes."""
    dtype = draw(st.sampled_from([torch.int8, torch.int16, torch.float32]))
    flat = torch.zeros(64, dtype=torch.int8).view(dtype)
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    stride = [draw(st.integers(0, 5)) for _ in shape]
    last = sum((n - 1) * step for n, step in zip(shape, stride, strict=True)) if 0 not in shape else 0
    offset = draw(st.integers(0, max(0, flat.numel() - 1 - max(last, 0)))) if last < flat.numel() else 0
    if last + offset >= flat.numel():
        return flat
    return flat.as_strided(shape, stride, offset)


def touched(tensor: torch.Tensor) -> set[int]:
    """The storage bytes of a tensor's elements, computed element by element."""
    size = tensor.element_size()
    starts = {
        size
        * (int(tensor.storage_offset()) + sum(i * s for i, s in zip(index, tensor.stride(), strict=True)))
        for index in torch.ones(tensor.shape).nonzero().tolist()
    }
    return {start + byte for start in starts for byte in range(size)}


@given(views())
def test_the_bytes_of_a_tensor_lie_in_its_extent(tensor: torch.Tensor) -> None:
    meta, (start, stop) = meta_of(tensor), extent(meta_of(tensor))

    assert {start + int(byte) for byte in occupied(meta).nonzero()[0]} == touched(tensor)
    if dense(meta):
        assert touched(tensor) == set(range(start, stop))
    assert row_major(meta) == tensor.is_contiguous() or tensor.numel() == 0
    assert occupied_bytes(meta) == len(touched(tensor))


@given(views(), views())
def test_two_tensors_share_bytes_as_they_do_in_memory(one: torch.Tensor, other: torch.Tensor) -> None:
    distance = extent(meta_of(one))[0] - extent(meta_of(other))[0]
    mine, theirs = touched(one), touched(other)

    expected = "disjoint" if not mine & theirs else "inside" if mine <= theirs else "overlap"
    assert relation(meta_of(one), meta_of(other), distance) == expected


def test_a_large_tensor_with_gaps_counts_as_its_whole_extent() -> None:
    cut = TensorMeta((1 << 6, 1 << 6, 1 << 8), (1 << 17, 1 << 9, 1), "float32", "cpu")

    assert relation(cut, cut, 4 * (1 << 8)) == "overlap"


def test_large_slices_of_a_matrix_are_compared_exactly() -> None:
    columns = TensorMeta((1 << 12, 1 << 8), (1 << 9, 1), "float32", "cpu")

    assert relation(columns, columns, 4 * (1 << 8)) == "disjoint"
    assert relation(columns, columns, 4 * (1 << 9)) == "overlap"
    assert relation(columns, columns, 0) == "inside"


def test_views_of_the_same_bytes_in_the_same_order_have_one_digest() -> None:
    matrix, vector = TensorMeta((4, 8), (8, 1), "float32", "cpu"), TensorMeta((32,), (1,), "int32", "cpu")
    transposed = TensorMeta((8, 4), (1, 8), "float32", "cpu")

    assert same_digest(matrix, vector)
    assert not same_digest(matrix, transposed)
