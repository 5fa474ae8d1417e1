"""Memory that is read through a different view than it was written through, and elements of small tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO
from triton.runtime.interpreter import InterpretedFunction

from tracing import store
from tracing.digest.host import bits
from tracing.model import OperatorCall, Reread, Values
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


def copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n), at < n)


copy_compiled = triton.jit(copy)


def launch(x: torch.Tensor, out: torch.Tensor) -> None:
    copy_compiled[(1,)](x, out, out.numel(), BLOCK=64)


def recorded(runs: Path, call: Callable[[], object]) -> store.Run:
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer):
        call()
    return store.Run(writer.path)


def rereads(runs: Path, call: Callable[[], object]) -> list[Reread]:
    return list(recorded(runs, call).records(Reread))


# ---- views ----


def test_memory_read_through_a_different_view_is_digested_through_the_writers_view(
    gpu: None, tmp_path: Path
) -> None:
    x, y, out = torch.randn(64), torch.zeros(64), torch.zeros(16)

    def program() -> None:
        launch(x, y)
        launch(y[:16], out)
        launch(y.view(8, 8), torch.zeros(64))

    assert rereads(tmp_path, program) == [Reread(1, 0, 0, 1, bits(x)[0]), Reread(2, 0, 0, 1, bits(x)[0])]


def test_a_write_of_the_host_between_write_and_read_changes_the_digest(gpu: None, tmp_path: Path) -> None:
    x, y, out = torch.randn(64), torch.zeros(64), torch.zeros(16)

    def program() -> None:
        launch(x, y)
        ctypes.memset(y.data_ptr() + 100, 1, 4)
        launch(y[:16], out)

    (reread,) = rereads(tmp_path, program)

    assert reread.bits == bits(y)[0] != bits(x)[0]


def test_memory_read_through_the_writers_view_is_not_digested_twice(gpu: None, tmp_path: Path) -> None:
    x, y = torch.randn(64), torch.zeros(64)

    assert rereads(tmp_path, lambda: [launch(x, y), launch(y, torch.zeros(64))]) == []


def test_a_view_that_does_not_overlap_the_write_is_not_digested(gpu: None, tmp_path: Path) -> None:
    x, memory, columns = torch.randn(32), torch.zeros(64), torch.zeros(32, 2)

    def program() -> None:
        launch(x, memory[:32])
        launch(memory[32:], torch.zeros(32))
        InterpretedFunction(copy_strided)[(1,)](x, columns[:, 0], 1, 2, BLOCK=32)
        InterpretedFunction(copy_strided)[(1,)](columns[:, 1], torch.zeros(32), 2, 1, BLOCK=32)

    assert rereads(tmp_path, program) == []


def copy_strided(x, out, step_x, step_out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at * step_out, tl.load(x + at * step_x))


@pytest.mark.parametrize("writer", ["operator", "launch", "allocation"])
def test_memory_that_was_overwritten_is_not_digested(gpu: None, tmp_path: Path, writer: str) -> None:
    x, out = torch.randn(64), torch.zeros(16)

    def program() -> None:
        y = torch.zeros(64)
        launch(x, y)
        if writer == "operator":
            y[20:30].fill_(1)
        elif writer == "launch":
            launch(x[:4], y[30:34])
        else:
            y.resize_(100_000)
        launch(y[:16], out)

    assert [one.launch for one in rereads(tmp_path, program) if one.writer == 0] == []


def test_memory_that_was_freed_is_not_digested(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        for _ in range(10):
            y = torch.zeros(4096)
            launch(torch.ones(64), y[:64])
            del y
            launch(torch.zeros(4096)[:32], torch.zeros(32))

    assert rereads(tmp_path, program) == []


def test_an_interpreted_launch_is_digested_for_the_bytes_it_read(gpu: None, tmp_path: Path) -> None:
    x, y = torch.randn(64), torch.zeros(64)

    def program() -> None:
        launch(x, y)
        InterpretedFunction(copy)[(1,)](x, y[:16], 16, BLOCK=16)
        launch(x, y)
        InterpretedFunction(copy)[(1,)](y[:16], torch.zeros(16), 16, BLOCK=16)

    assert [(one.launch, one.position, one.writer) for one in rereads(tmp_path, program)] == [(3, 0, 2)]


def test_digesting_is_not_recorded_as_an_operator(gpu: None, tmp_path: Path) -> None:
    x, y, out = torch.randn(64), torch.zeros(64), torch.zeros(16)
    run = recorded(tmp_path, lambda: [launch(x, y), launch(y[:16], out)])

    assert list(run.records(OperatorCall)) == []


# ---- elements ----


def values(runs: Path, call: Callable[[], object]) -> dict[tuple[int, int, str], tuple[object, ...]]:
    return {(one.launch, one.position, one.side): one.values for one in recorded(runs, call).records(Values)}


def test_elements_of_small_tensors_are_recorded_for_reads_and_writes(gpu: None, tmp_path: Path) -> None:
    x = torch.tensor([1.0, float("nan"), float("-inf"), -0.0])
    recorded = values(tmp_path, lambda: launch(x, torch.zeros(4)))

    assert repr(recorded) == repr(
        {(0, 0, "before"): (1.0, "nan", "-inf", -0.0), (0, 1, "after"): (1.0, "nan", "-inf", -0.0)}
    )


def test_elements_of_large_tensors_are_not_recorded(gpu: None, tmp_path: Path) -> None:
    assert values(tmp_path, lambda: launch(torch.ones(65), torch.zeros(65))) == {}


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(torch.bool, (True, False)), (torch.bfloat16, (1.0, 0.0)), (torch.int64, (1, 0)), (torch.uint8, (1, 0))],
)
def test_recorded_elements_keep_their_dtype(
    gpu: None, tmp_path: Path, dtype: torch.dtype, expected: tuple[object, ...]
) -> None:
    recorded = values(tmp_path, lambda: launch(torch.tensor([1, 0]).to(dtype), torch.zeros(2, dtype=dtype)))

    assert repr(list(recorded.values())) == repr([expected, expected])
    assert [type(one) for one in recorded[0, 0, "before"]] == [type(one) for one in expected]


def test_elements_are_in_their_logical_order(gpu: None, tmp_path: Path) -> None:
    x = torch.arange(6.0).view(2, 3)
    recorded = values(tmp_path, lambda: launch(x.t(), torch.zeros(6)))

    assert recorded[0, 0, "before"] == (0.0, 3.0, 1.0, 4.0, 2.0, 5.0)
