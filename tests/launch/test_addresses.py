"""Integer arguments that hold addresses are distinguished from numbers, by every launcher."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO
from triton.runtime.interpreter import InterpretedFunction

from tracing import store
from tracing.model import NotCovered
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


def through_table(table, address, n, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    first = tl.load(table).to(tl.pointer_type(tl.float32))
    second = address.to(tl.pointer_type(tl.float32))
    tl.store(out + at, tl.load(first + at, mask=at < n) + tl.load(second + at, mask=at < n), mask=at < n)


compiled_kernel = triton.jit(through_table)


def addresses(runs: Path, call: Callable[[], object]) -> list[str]:
    """The arguments of the only launch that hold addresses."""
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer):
        call()
    (launch,) = store.Run(writer.path).launches()
    return [arg.name for arg in launch.args if arg.addresses]


def test_the_ir_of_a_compiled_kernel_determines_which_arguments_hold_addresses(
    gpu: None, tmp_path: Path
) -> None:
    x, y, out = torch.ones(16), torch.ones(16), torch.zeros(16)
    table = torch.tensor([x.data_ptr(), y.data_ptr()])
    holding = addresses(tmp_path, lambda: compiled_kernel[(1,)](table, y.data_ptr(), 1 << 40, out, BLOCK=16))

    assert holding == ["table", "address"]


def test_memory_accessed_through_addresses_is_reported_as_not_covered(gpu: None, tmp_path: Path) -> None:
    x, out = torch.ones(16), torch.zeros(16)
    writer = store.create(tmp_path, INFO)
    with LaunchRecorder(writer):
        compiled_kernel[(1,)](torch.tensor([x.data_ptr()]), x.data_ptr(), 16, out, BLOCK=16)
    said = [one.what for one in store.Run(writer.path).records(NotCovered)]

    assert said == ["what through_table reads and writes at addresses that it is given (table, address)"]


def test_an_interpreted_kernels_addresses_are_integers_that_point_into_known_memory(tmp_path: Path) -> None:
    def kernel(table, address, n, numbers, zeros):
        tl.load(table)

    def program() -> None:
        x, y = torch.ones(16), torch.ones(16)
        table = torch.tensor([x.data_ptr(), 0, y.data_ptr() + 60])
        numbers, zeros = torch.tensor([x.data_ptr(), 5]), torch.zeros(3, dtype=torch.int64)
        InterpretedFunction(kernel)[(1,)](table, y.data_ptr() + 4, 1 << 40, numbers, zeros)

    assert addresses(tmp_path, program) == ["table", "address"]


def test_the_address_after_the_end_of_a_block_is_no_address_in_it(tmp_path: Path) -> None:
    def kernel(address, other):
        tl.full((1,), 1, tl.int32)

    def program() -> None:
        x = torch.ones(1 << 20)  # in pages of its own
        InterpretedFunction(kernel)[(1,)](x.data_ptr(), x.data_ptr() + (4 << 20))

    assert addresses(tmp_path, program) == ["address"]
