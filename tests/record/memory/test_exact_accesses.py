"""The exact accesses of a launch in its run, on the virtual GPU and with TRITON_INTERPRET=1."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO
from triton.runtime.interpreter import InterpretedFunction

from tracing import store
from tracing.digest.host import bits, bits_of, element_bytes
from tracing.model import Access
from tracing.perturb.perturbation import Perturbation
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.selection import Selection
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n), at < n)


@triton.jit
def copy_strided(x, out, n, step_x, step_out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at * step_out, tl.load(x + at * step_x, at < n), at < n)


@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, at < n) * 2, at < n)


@triton.jit
def shift(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at + 1, tl.load(x + at, at < n), at < n)


def accesses(runs: Path, call: Callable[[], object], **options: Any) -> list[Access]:
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer, **options):
        call()
    return list(store.Run(writer.path).records(Access))


def partial(tensor: torch.Tensor, touched: list[int]) -> str:
    """The digest of some elements of a tensor."""
    content = element_bytes(tensor).reshape(tensor.numel(), -1)
    mask = np.zeros(content.shape, np.bool_)
    mask[touched] = True
    return bits_of(np.concatenate([(content * mask).reshape(-1), np.packbits(mask)]))[0]


# ---- reads and writes ----


def test_arguments_that_are_accessed_completely_have_digests_of_their_own(gpu: None, tmp_path: Path) -> None:
    x, out = torch.randn(100), torch.empty(100)
    (access,) = accesses(tmp_path, lambda: copy[(2,)](x, out, 100, BLOCK=64))

    assert access == Access(0, {0: bits(x)[0]}, {1: bits(out)[0]})


def test_a_part_has_the_digest_of_its_elements_and_ranges_of_bytes(gpu: None, tmp_path: Path) -> None:
    x, out = torch.randn(100), torch.randn(100)
    (access,) = accesses(tmp_path, lambda: copy[(1,)](x, out, 30, BLOCK=64))

    assert access.read == {0: partial(x, list(range(30)))}
    assert access.written == {1: partial(out, list(range(30)))}
    assert (access.read_ranges, access.written_ranges, access.partly) == ({0: (0, 120)}, {1: (0, 120)}, (1,))


def test_equal_bytes_at_different_positions_have_different_digests(gpu: None, tmp_path: Path) -> None:
    x, out = torch.zeros(64), torch.zeros(64)
    first, second = accesses(tmp_path, lambda: [copy[(1,)](x, out, n, BLOCK=64) for n in (10, 11)])

    assert first.read != second.read
    assert first.written != second.written


def test_the_digest_of_a_read_is_that_of_the_bits_before_the_launch(gpu: None, tmp_path: Path) -> None:
    x = torch.randn(64)
    before = bits(x)[0]
    (access,) = accesses(tmp_path, lambda: double[(1,)](x, 64, BLOCK=64))

    assert (access.read, access.written) == ({0: before}, {0: bits(x)[0]})


def test_the_digest_of_a_partial_in_place_read_is_that_of_the_bits_before_the_launch(
    gpu: None, tmp_path: Path
) -> None:
    x = torch.randn(64)
    read = partial(x, list(range(10)))
    (access,) = accesses(tmp_path, lambda: shift[(1,)](x, 10, BLOCK=16))

    assert access.read == {0: read}
    assert access.written == {0: partial(x, list(range(1, 11)))}
    assert (access.read_ranges, access.written_ranges) == ({0: (0, 40)}, {0: (4, 44)})


def test_an_element_that_the_launch_wrote_itself_is_not_read(gpu: None, tmp_path: Path) -> None:
    @triton.jit
    def fill_and_sum(x, out, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(x + at, at.to(tl.float32), at < 8)
        tl.store(out, tl.sum(tl.load(x + at)))

    x, out = torch.ones(16), torch.ones(1)
    (access,) = accesses(tmp_path, lambda: fill_and_sum[(1,)](x, out, BLOCK=16))

    assert access.read == {0: partial(torch.ones(16), list(range(8, 16)))}
    assert access.written == {0: partial(x, list(range(8))), 1: bits(out)[0]}


def test_runs_of_bytes_are_listed_unless_there_are_many(gpu: None, tmp_path: Path) -> None:
    x, out = torch.randn(64), torch.randn(64)

    def program() -> None:
        for count in (16, 17):
            copy_strided[(1,)](x, out, count, 2, 2, BLOCK=32)

    few, many = accesses(tmp_path, program)

    runs = tuple(byte for i in range(16) for byte in (8 * i, 8 * i + 4))
    assert (few.read_ranges, few.written_ranges) == ({0: runs}, {1: runs})
    assert (many.read_ranges, many.written_ranges, many.partly) == ({}, {}, (1,))


def test_a_launch_that_accesses_nothing_is_recorded_with_no_access(gpu: None, tmp_path: Path) -> None:
    assert accesses(tmp_path, lambda: copy[(1,)](torch.ones(4), torch.ones(4), 0, BLOCK=64)) == [Access(0)]


# ---- layouts and dtypes ----


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.int64, torch.int8, torch.bool],
)
def test_elements_of_any_size_are_distinguished(gpu: None, tmp_path: Path, dtype: torch.dtype) -> None:
    x = torch.arange(40).to(torch.float32).to(dtype)
    out = torch.zeros_like(x)
    whole, part = accesses(tmp_path, lambda: [copy[(1,)](x, out, n, BLOCK=64) for n in (40, 7)])

    assert (whole.read, whole.written) == ({0: bits(x)[0]}, {1: bits(x)[0]})
    assert part.read == {0: partial(x, list(range(7)))}
    assert part.read_ranges == {0: (0, 7 * x.element_size())}


def test_halves_of_an_element_are_distinguished(gpu: None, tmp_path: Path) -> None:
    x, out = torch.randn(8, dtype=torch.complex64), torch.zeros(16)
    pairs = torch.view_as_real(x)
    (access,) = accesses(tmp_path, lambda: copy_strided[(1,)](pairs, out, 8, 2, 1, BLOCK=8))

    assert access.read_ranges == {0: tuple(byte for i in range(8) for byte in (8 * i, 8 * i + 4))}


def test_bytes_of_an_element_are_distinguished(gpu: None, tmp_path: Path) -> None:
    @triton.jit
    def second_byte(x, out):
        tl.store(out, tl.load(x.to(tl.pointer_type(tl.int8)) + 1))

    x, out = torch.tensor([0x01020304, 5], dtype=torch.int32), torch.zeros(1, dtype=torch.int8)
    (access,) = accesses(tmp_path, lambda: second_byte[(1,)](x, out))

    assert (access.read_ranges, out.tolist()) == ({0: (1, 2)}, [3])


def test_a_column_is_accessed_completely_although_its_elements_are_not_adjacent(
    gpu: None, tmp_path: Path
) -> None:
    x, out = torch.randn(16, 4), torch.zeros(16)
    column = x[:, 2]
    (access,) = accesses(tmp_path, lambda: copy_strided[(1,)](column, out, 16, 4, 1, BLOCK=16))

    assert (access.read, access.read_ranges) == ({0: bits(column)[0]}, {})


def test_a_part_of_a_column_has_ranges_in_memory(gpu: None, tmp_path: Path) -> None:
    x, out = torch.randn(16, 4), torch.zeros(16)
    column = x[:, 2]
    (access,) = accesses(tmp_path, lambda: copy_strided[(1,)](column, out, 3, 4, 1, BLOCK=16))

    assert access.read == {0: partial(column, [0, 1, 2])}
    assert access.read_ranges == {0: (0, 4, 16, 20, 32, 36)}


def test_a_transposed_tensor_is_digested_in_its_logical_order(gpu: None, tmp_path: Path) -> None:
    x, out = torch.randn(8, 8), torch.zeros(64)
    (access,) = accesses(tmp_path, lambda: copy[(1,)](x.t(), out, 64, BLOCK=64))

    assert access.read == {0: bits(x.t())[0]} != {0: bits(x)[0]}


def test_an_access_to_an_expanded_tensor_is_one_to_its_only_row(gpu: None, tmp_path: Path) -> None:
    row, out = torch.randn(8), torch.zeros(8)
    expanded = row.expand(4, 8)
    whole, part = accesses(tmp_path, lambda: [copy[(1,)](expanded, out, n, BLOCK=8) for n in (8, 2)])

    assert whole.read == {0: bits(expanded)[0]}
    assert part.read == {0: partial(expanded, [8 * i + j for i in range(4) for j in range(2)])}
    assert part.read_ranges == {0: (0, 8)}


def test_tensors_of_no_dimension_and_of_no_elements_are_followed(gpu: None, tmp_path: Path) -> None:
    x, out = torch.tensor(3.0), torch.zeros(())
    empty = torch.zeros(0)

    def program() -> None:
        copy[(1,)](x, out, 1, BLOCK=1)
        copy[(1,)](empty, empty, 0, BLOCK=1)

    scalar, nothing = accesses(tmp_path, program)

    assert scalar == Access(0, {0: bits(x)[0]}, {1: bits(out)[0]})
    assert nothing == Access(1)


# ---- memory with several names ----


def test_slices_of_one_storage_are_distinguished(gpu: None, tmp_path: Path) -> None:
    memory = torch.randn(128)
    (access,) = accesses(tmp_path, lambda: copy[(1,)](memory[:64], memory[64:], 64, BLOCK=64))

    assert (access.read, access.written) == ({0: bits(memory[:64])[0]}, {1: bits(memory[64:])[0]})


def test_a_tensor_that_is_passed_twice_is_read_and_written_by_both_names(gpu: None, tmp_path: Path) -> None:
    x = torch.randn(64)
    before = bits(x)[0]
    (access,) = accesses(tmp_path, lambda: copy[(1,)](x, x, 64, BLOCK=64))

    assert access.read == {0: before, 1: before}
    assert access.written == {0: bits(x)[0], 1: bits(x)[0]}


def test_overlapping_views_each_have_their_own_part(gpu: None, tmp_path: Path) -> None:
    memory = torch.randn(96)
    (access,) = accesses(tmp_path, lambda: copy[(1,)](memory[32:], memory[:64], 32, BLOCK=32))

    assert access.read_ranges == {0: (0, 128), 1: (128, 256)}
    assert access.written_ranges == {1: (0, 128)}


def test_interleaved_columns_are_distinguished(gpu: None, tmp_path: Path) -> None:
    x = torch.randn(16, 2)
    (access,) = accesses(tmp_path, lambda: copy_strided[(1,)](x[:, 0], x[:, 1], 16, 2, 2, BLOCK=16))

    assert (access.read, access.written) == ({0: bits(x[:, 0])[0]}, {1: bits(x[:, 1])[0]})


def test_storages_that_share_memory_are_one(gpu: None, tmp_path: Path) -> None:
    array = np.random.default_rng(0).random(64, np.float32)
    x, same = torch.from_numpy(array), torch.from_numpy(array)
    (access,) = accesses(tmp_path, lambda: copy[(1,)](x, same, 64, BLOCK=64))

    assert set(access.read) == set(access.written) == {0, 1}


# ---- launch paths ----


def test_generated_kernels_and_interpreted_ones_are_followed(gpu: None, tmp_path: Path) -> None:
    def kernel(x, out, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at))

    x, out = torch.randn(64), torch.empty(64)
    results: list[torch.Tensor] = []

    def program() -> None:
        results.append(torch.compile(torch.sin)(x))
        InterpretedFunction(kernel)[(1,)](x, out, BLOCK=64)

    generated, interpreted = accesses(tmp_path, program)

    assert (generated.read, generated.written) == ({0: bits(x)[0]}, {1: bits(results[0])[0]})
    assert (interpreted.read, interpreted.written) == ({0: bits(x)[0]}, {1: bits(x)[0]})


@pytest.mark.soak
def test_without_digests_nothing_exact_is_recorded(gpu: None, tmp_path: Path) -> None:
    x = torch.ones(64)

    assert accesses(tmp_path, lambda: double[(1,)](x, 64, BLOCK=64), digests="none") == []


# ---- unwritten memory ----


def uninitialised(runs: Path, call: Callable[[], object]) -> list[dict[int, tuple[int, int]]]:
    return [dict(one.uninitialised) for one in accesses(runs, call)]


def test_a_read_of_unwritten_memory_is_recorded_with_its_elements(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        x, out = torch.empty(100), torch.empty(100)
        x[:40].fill_(1)
        copy[(1,)](x, out, 60, BLOCK=64)
        copy[(1,)](x, out, 40, BLOCK=64)

    assert uninitialised(tmp_path, program) == [{0: (40, 20)}, {}]


def test_elements_that_a_launch_skipped_are_still_unwritten(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        x, y, out = torch.ones(64), torch.empty(64), torch.empty(64)
        copy[(1,)](x, y, 50, BLOCK=64)
        copy[(1,)](y, out, 50, BLOCK=64)
        copy[(1,)](y, out, 51, BLOCK=64)

    assert uninitialised(tmp_path, program) == [{}, {}, {0: (50, 1)}]


def test_masked_padding_that_is_not_read_is_no_read(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        x, out = torch.empty(64), torch.empty(64)
        x[:5].fill_(1)
        copy[(1,)](x, out, 5, BLOCK=64)

    assert uninitialised(tmp_path, program) == [{}]


def test_memory_that_the_host_wrote_is_not_unwritten(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        x, y, out = torch.empty(64), torch.empty(64), torch.empty(64)
        x.numpy()[:] = np.arange(64)
        ctypes.memset(y.data_ptr(), 3, 4 * 64)
        copy[(1,)](x, out, 64, BLOCK=64)
        copy[(1,)](y, out, 64, BLOCK=64)

    assert uninitialised(tmp_path, program) == [{}, {}]


def test_memory_shared_with_numpy_may_have_been_written_by_it(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        x, y, out = torch.empty(64), torch.empty(64), torch.empty(64)
        for array in (x.numpy(), np.from_dlpack(y)):
            array[:] = array.copy()  # the same bytes as before
        copy[(1,)](x, out, 64, BLOCK=64)
        copy[(1,)](y, out, 64, BLOCK=64)

    assert uninitialised(tmp_path, program) == [{}, {}]
    assert "numpy" not in vars(torch.Tensor)


def test_an_element_with_one_written_byte_is_not_unwritten(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        x, out = torch.empty(8), torch.empty(8)
        x.view(torch.uint8)[4:5].fill_(1)
        copy[(1,)](x, out, 8, BLOCK=8)

    assert uninitialised(tmp_path, program) == [{0: (0, 7)}]


def test_memory_that_a_new_tensor_reuses_is_not_unwritten(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        out = torch.empty(4096)
        for _ in range(5):
            fresh = torch.empty(4096)
            del fresh
            x = torch.from_numpy(np.zeros(4096, np.float32))
            y = torch.ones(4096)
            copy[(64,)](x, out, 4096, BLOCK=64)
            copy[(64,)](y, out, 4096, BLOCK=64)

    assert uninitialised(tmp_path, program) == [{}] * 10


def test_a_storage_that_grew_is_unwritten_in_its_new_bytes(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        x, out = torch.ones(10), torch.empty(64)
        x.resize_(60)
        copy[(1,)](x, out, 60, BLOCK=64)

    assert uninitialised(tmp_path, program) == [{0: (10, 50)}]


def test_unwritten_columns_are_distinguished(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        x, out = torch.empty(16, 2), torch.empty(16)
        x[:, 0].fill_(1)
        copy_strided[(1,)](x[:, 0], out, 16, 2, 1, BLOCK=16)
        copy_strided[(1,)](x[:, 1], out, 16, 2, 1, BLOCK=16)

    assert uninitialised(tmp_path, program) == [{}, {0: (0, 16)}]


def test_a_buffer_of_generated_code_is_unwritten_in_elements_that_a_kernel_skipped(
    gpu: None, tmp_path: Path
) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        copy[(1,)](x, y, 50, BLOCK=64)
        return y + 1

    reads = uninitialised(tmp_path, lambda: torch.compile(program)(torch.ones(64)))

    assert reads == [{}, {0: (50, 14)}]


def test_memory_is_followed_through_launches_that_are_not_recorded(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        x, y, out = torch.ones(64), torch.empty(64), torch.empty(64)
        copy[(1,)](x, y, 50, BLOCK=64)
        copy[(1,)](y, out, 64, BLOCK=64)

    (access,) = accesses(tmp_path, program, selection=Selection(launches=(1, 2)))

    assert (access.launch, access.uninitialised) == (1, {0: (50, 14)})


def test_memory_that_a_perturbation_filled_still_counts_as_unwritten(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        x, out = torch.empty(64), torch.empty(64)
        x[:40].fill_(1)
        copy[(1,)](x, out, 64, BLOCK=64)

    writer = store.create(tmp_path, INFO)
    with Perturbation(1, True, 0, writer) as filling, filling, LaunchRecorder(writer):
        program()
    (access,) = store.Run(writer.path).records(Access)

    assert access.uninitialised == {0: (40, 24)}
