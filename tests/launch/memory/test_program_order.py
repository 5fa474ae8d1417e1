"""A launch whose programs, or threads, access what others write is named; correct kernels are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO

from tracing import store
from tracing.launch.memory.happens_before import HappensBefore
from tracing.launch.memory.program_order import Conflict, ProgramOrder
from tracing.model import MemoryEvidence
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture(scope="module", autouse=True)
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * columns + at, mask=at < columns, other=-float("inf"))
    weights = tl.exp(row - tl.max(row, 0))
    tl.store(out + tl.program_id(0) * columns + at, weights / tl.sum(weights, 0), mask=at < columns)


@triton.jit
def transpose(x, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tile = tl.load(x + at[:, None] * SIZE + at[None, :])
    tl.store(x + at[None, :] * SIZE + at[:, None], tile)


@triton.jit
def mean_of_neighbours(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    right = tl.load(x + at + 1, mask=at + 1 < n, other=0.0)
    tl.store(x + at, (tl.load(x + at, mask=at < n) + right) / 2, mask=at < n)


@triton.jit
def sum_under_lock(x, out, lock, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + at), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + part)
    tl.atomic_xchg(lock, 0)


@triton.jit
def sum_without_lock(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out, tl.load(out) + tl.sum(tl.load(x + at), 0))


@triton.jit
def store_sum(x, out, BLOCK: tl.constexpr, SHARED: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) // SHARED, 0.0)
    tl.store(out + tl.program_id(0) // SHARED, tl.sum(tl.load(x + at), 0))


@triton.jit
def add_atomically(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at), 0))


def evidence(runs: Path, call: Callable[[], object]) -> list[MemoryEvidence]:
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer):
        call()
    writer.close()
    return list(store.Run(writer.path).records(MemoryEvidence))


def test_arguments_that_are_one_storage_shifted_across_programs_are_a_race(tmp_path: Path) -> None:
    x = torch.rand(1000)

    (seen,) = evidence(tmp_path, lambda: double[(4,)](x[:-1], x[1:], 999, BLOCK=256))

    assert (seen.launch, seen.kind, seen.arguments) == (0, "race", ("x", "out"))
    assert "x[256], which is out[255]" in seen.what
    assert "program (0, 0, 0) writes" in seen.what and "program (1, 0, 0) reads it" in seen.what
    assert seen.where == f"test_program_order.py:{double.fn.__code__.co_firstlineno + 3}"


def test_a_shift_within_one_program_is_a_race_of_its_threads(tmp_path: Path) -> None:
    x = torch.rand(200)

    (seen,) = evidence(tmp_path, lambda: double[(1,)](x[:-1], x[1:], 199, BLOCK=256))

    assert seen.what.startswith("threads of program (0, 0, 0) read ")


@pytest.mark.parametrize("kernel", [mean_of_neighbours, sum_without_lock], ids=lambda one: one.__name__)
def test_one_argument_that_programs_read_and_write_is_a_race(kernel: object, tmp_path: Path) -> None:
    x, out = torch.rand(1024), torch.zeros(1)
    calls = {
        "mean_of_neighbours": lambda: mean_of_neighbours[(4,)](x, 1024, BLOCK=256),
        "sum_without_lock": lambda: sum_without_lock[(4,)](x, out, BLOCK=256),
    }

    (seen,) = evidence(tmp_path, calls[kernel.__name__])  # type: ignore[attr-defined]

    assert seen.kind == "race"


def test_different_values_that_programs_leave_in_one_element_are_a_race(tmp_path: Path) -> None:
    x, out = torch.arange(64.0), torch.zeros(2)

    (seen,) = evidence(tmp_path, lambda: store_sum[(4,)](x, out, BLOCK=16, SHARED=2))

    assert (seen.launch, seen.kind, seen.arguments) == (0, "race", ("out",))
    assert seen.what.startswith("programs (0, 0, 0) and (1, 0, 0) write different values to out[0]: ")
    assert seen.where == f"test_program_order.py:{store_sum.fn.__code__.co_firstlineno + 3}"


def test_different_values_of_the_last_two_programs_are_a_race(tmp_path: Path) -> None:
    x = torch.ones(64)
    x[-1] = 2

    (seen,) = evidence(tmp_path, lambda: store_sum[(4,)](x, torch.zeros(1), BLOCK=16, SHARED=4))

    assert "programs (2, 0, 0) and (3, 0, 0) write different values to out[0]" in seen.what


def an_own_element_written_twice() -> None:
    store_sum[(4,)](torch.rand(64), torch.zeros(4), BLOCK=16, SHARED=1)


def equal_values_in_one_element() -> None:
    store_sum[(4,)](torch.ones(64), torch.zeros(1), BLOCK=16, SHARED=4)


def only_atomics() -> None:
    add_atomically[(4,)](torch.rand(64), torch.zeros(2), BLOCK=16)


def in_place() -> None:
    x = torch.rand(1000)
    double[(4,)](x, x, 1000, BLOCK=256)


def halves_of_one_storage() -> None:
    x = torch.rand(1000)
    double[(2,)](x[:500], x[500:], 500, BLOCK=256)


def even_and_odd_elements() -> None:
    x = torch.rand(64)
    for part in (x[::2], x[1::2]):
        double[(1,)](part.contiguous(), part.contiguous(), 32, BLOCK=32)


def rows_in_place() -> None:
    x = torch.rand(16, 100)
    softmax[(16,)](x, x, 100, BLOCK=128)


def transposed_in_place() -> None:
    transpose[(1,)](torch.rand(16, 16), SIZE=16)


def under_a_lock() -> None:
    sum_under_lock[(4,)](torch.rand(64), torch.zeros(1), torch.zeros(1, dtype=torch.int32), BLOCK=16)


def one_input_twice() -> None:
    x = torch.rand(256)
    double[(4,)](x, torch.empty(256), 256, BLOCK=64)


@pytest.mark.parametrize(
    "call",
    [
        in_place, halves_of_one_storage, even_and_odd_elements, rows_in_place, transposed_in_place,
        under_a_lock, one_input_twice, an_own_element_written_twice, equal_values_in_one_element,
        only_atomics,
    ],
    ids=lambda call: call.__name__,
)  # fmt: skip
def test_a_correct_kernel_has_no_race(call: Callable[[], None], tmp_path: Path) -> None:
    assert evidence(tmp_path, call) == []


def test_what_several_programs_read_and_one_writes_is_a_conflict() -> None:
    before = HappensBefore()
    order = ProgramOrder(1000, np.zeros(40, np.uint8), 4, before, shifted=False)
    at = np.array([1008])
    for program in range(2):
        assert order.note("load", at, 4, before.number((program, 0, 0))) is None

    assert order.note("store", at, 4, 1) == Conflict(1008, (0, 0, 0), (1, 0, 0))
