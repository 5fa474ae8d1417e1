"""A kernel that accesses memory outside of its tensors fails with a report and leaves it unchanged."""

from __future__ import annotations

import threading
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
from tracing.launch.memory.out_of_bounds import OutOfBoundsError
from tracing.model import Access, LaunchLine, OutOfBounds
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.report.findings import out_of_bounds_text
from tracing.report.run import run_text
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n)
    tl.store(out + at, value * 2, at < n)


double_compiled = triton.jit(double)
LOAD, STORE = (f"{Path(__file__).name}:{double.__code__.co_firstlineno + line}" for line in (2, 3))


class Block:
    """Memory with a tensor's storage in its middle, so that a test can read the memory next to it."""

    def __init__(self, before: int, elements: int, after: int) -> None:
        self.memory = bytearray(4 * (before + elements + after))
        view = memoryview(self.memory)[4 * before : 4 * (before + elements)]
        self.tensor = torch.frombuffer(view, dtype=torch.float32)


def recorded(runs: Path, call: Callable[[], object], **options: Any) -> store.Run:
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer, **options):
        call()
    return store.Run(writer.path)


def failed(runs: Path, call: Callable[[], object], **options: Any) -> tuple[store.Run, OutOfBoundsError]:
    writer = store.create(runs, INFO)
    with pytest.raises(OutOfBoundsError) as error, LaunchRecorder(writer, **options):
        call()
    return store.Run(writer.path), error.value


def outside(run: store.Run) -> list[OutOfBounds]:
    return [one for process in run.processes(OutOfBounds) for one in run.out_of_bounds(process)]


# ---- outside of every storage ----


def test_a_load_after_a_tensors_end_fails_with_a_full_report(gpu: None, tmp_path: Path) -> None:
    x, out = Block(0, 100, 200), torch.zeros(300)
    run, error = failed(tmp_path, lambda: double_compiled[(4,)](x.tensor, out, 256, BLOCK=64))
    (access,) = outside(run)

    assert access == OutOfBounds(
        0, "x", "load", 100, (1, 0, 0), x.tensor.data_ptr() + 400, x.tensor.data_ptr() + 512, 28, False, LOAD
    )
    for part in ("double", "x[100]", "100 elements", "(1, 0, 0)", LOAD, "--allow-out-of-bounds"):
        assert part in str(error)


@triton.jit
def copied(x, out, rows, BLOCK: tl.constexpr):
    # the load lacks a mask for its rows
    i, j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    values = tl.load(x + i[:, None] * BLOCK + j[None, :])
    tl.store(out + i[:, None] * BLOCK + j[None, :], values, (i < rows)[:, None] & (j < BLOCK)[None, :])


@pytest.mark.parametrize("distance", [0, 64, 4096])
def test_an_access_is_of_the_argument_in_which_it_begins_and_not_of_the_nearest(
    distance: int, gpu: None, tmp_path: Path
) -> None:
    # the output lies after the input and is nearer to the last rows; with distance 0 some are inside of it
    memory = np.zeros(4 * 40 * 16 + distance + 4 * 4 * 16, np.uint8)
    x = torch.from_numpy(memory[: 4 * 40 * 16]).view(torch.float32).view(40, 16)
    out = torch.from_numpy(memory[4 * 40 * 16 + distance :]).view(torch.float32).view(4, 16)

    run, error = failed(tmp_path, lambda: copied[(3,)](x, out, 4, BLOCK=16))
    (access,) = outside(run)

    assert (access.argument, access.access, access.element, access.count) == ("x", "load", 640, 128)
    assert "x[640] of 640 elements" in str(error) and "mask the access" in str(error)


FAR = tl.constexpr(1 << 30)
TRITON = tuple(int(part) for part in triton.__version__.split(".")[:2])
BLOCK_POINTERS = pytest.mark.skipif(TRITON >= (3, 9), reason="block pointers were removed in Triton 3.9")


@triton.jit
def of_rows(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + FAR + at[:, None] * BLOCK + at[None, :], 1.0)


@triton.jit
def of_a_block_pointer(x, out, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(out, (1 << 31,), (1,), (0,), (BLOCK,), (0,))
    tl.store(tl.advance(block, (FAR,)), tl.zeros((BLOCK,), tl.float32))


@triton.jit
def of_a_descriptor(x, out, BLOCK: tl.constexpr):
    memory = tl.make_tensor_descriptor(out, [(1 << 31) - 1], [1], [BLOCK])
    memory.store([FAR], tl.zeros((BLOCK,), tl.float32))


@triton.jit
def of_an_atomic(x, out, BLOCK: tl.constexpr):
    tl.atomic_add(out + FAR + tl.arange(0, BLOCK), 1.0)


@triton.jit
def of_a_loop(x, out, BLOCK: tl.constexpr):
    pointers = out + tl.arange(0, BLOCK)
    for _ in range(4):
        tl.store(pointers, 1.0)
        pointers += FAR // 3


@triton.jit
def stored(pointers):
    tl.store(pointers + FAR, 1.0)


@triton.jit
def of_a_call(x, out, BLOCK: tl.constexpr):
    stored(out + tl.arange(0, BLOCK))


@triton.jit
def of_a_cast(x, out, BLOCK: tl.constexpr):
    tl.store(out.to(tl.pointer_type(tl.int32), bitcast=True) + FAR + tl.arange(0, BLOCK), 1)


@triton.jit
def of_a_branch(x, out, BLOCK: tl.constexpr):
    pointer = out if tl.load(x) > 0 else x
    tl.store(pointer + FAR, 1.0)


@triton.jit
def of_pointers_that_agree(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(tl.where(at > 2, out + at, out) + FAR, 1.0)


@pytest.mark.parametrize(
    "kernel",
    [
        of_rows, pytest.param(of_a_block_pointer, marks=BLOCK_POINTERS), of_a_descriptor, of_an_atomic,
        of_a_loop, of_a_call, of_a_cast, of_a_branch, of_pointers_that_agree,
    ],
)  # fmt: skip
def test_an_access_outside_is_of_the_argument_from_which_its_address_is_computed(
    kernel: Any, gpu: None, tmp_path: Path
) -> None:
    memory = np.ones((2, 64), np.float32)  # x lies after out, nearer to what the kernel accesses
    out, x = map(torch.from_numpy, memory)
    run, _ = failed(tmp_path, lambda: kernel[(1,)](x, out, BLOCK=16))

    assert {(one.argument, one.element >= 64) for one in outside(run)} == {("out", True)}


@triton.jit
def shifted(x, out, start, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + start + at))


@pytest.mark.parametrize(("start", "element"), [(64, 64), (70, 70), (56, 64), (-8, -8), (-20, -20)])
def test_an_access_that_lies_in_another_argument_is_outside_of_its_own(
    start: int, element: int, gpu: None, tmp_path: Path
) -> None:
    memory = np.ones((3, 64), np.float32)  # one after another, without a gap
    before, x, out = map(torch.from_numpy, memory)

    run, error = failed(tmp_path, lambda: shifted[(1,)](x, out if start > 0 else before, start, BLOCK=16))
    assert [(one.argument, one.element) for one in outside(run)] == [("x", element)]
    assert f"loads x[{element}] of 64 elements, outside of its storage" in str(error)

    run = recorded(
        tmp_path / "allowed",
        lambda: shifted[(1,)](x, out if start > 0 else before, start, BLOCK=16),
        allow_out_of_bounds=True,
    )
    assert [(one.argument, one.element) for one in outside(run)] == [("x", element)]


@triton.jit
def chosen(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    pointers = tl.where(at % 2 == 0, x + at, y + at)
    tl.store(out + at, tl.load(pointers) + tl.load(x if tl.load(x) > 0 else y))


def test_a_pointer_that_is_chosen_among_arguments_may_lie_in_each(gpu: None, tmp_path: Path) -> None:
    x, y, out = map(torch.from_numpy, np.ones((3, 64), np.float32))

    run = recorded(tmp_path, lambda: chosen[(1,)](x, y, out, BLOCK=64))
    assert list(outside(run)) == []


@triton.jit
def of_two_arguments(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(tl.where(at > 2, out + at, x + at) + FAR, 1.0)


@triton.jit
def of_an_integer(x, out, BLOCK: tl.constexpr):
    tl.store((out.to(tl.int64) + FAR * 8).to(tl.pointer_type(tl.float32)), 1.0)


@triton.jit
def of_null(x, out, BLOCK: tl.constexpr):
    tl.store(tl.cast(0, tl.int64).to(tl.pointer_type(tl.float32)), 1.0)


@pytest.mark.parametrize("kernel", [of_two_arguments, of_an_integer, of_null])
def test_an_access_outside_of_no_single_argument_is_reported_with_its_address(
    kernel: Any, gpu: None, tmp_path: Path
) -> None:
    run, error = failed(tmp_path, lambda: kernel[(1,)](torch.ones(64), torch.ones(64), BLOCK=16))
    (access,) = outside(run)

    assert (access.argument, f"from {access.start:#x} on" in access.what) == ("", True)
    assert f"stores memory at {access.start:#x}" in str(error)


@triton.jit
def of_a_tuple(pair, BLOCK: tl.constexpr):
    tl.store(pair[1] + FAR + tl.arange(0, BLOCK), 1.0)


def test_an_access_outside_is_of_the_member_of_a_tuple(gpu: None, tmp_path: Path) -> None:
    run, _ = failed(tmp_path, lambda: of_a_tuple[(1,)]((torch.ones(64), torch.ones(64)), BLOCK=16))

    assert [one.argument for one in outside(run)] == ["pair.1"]


def test_the_elements_of_a_strided_argument_are_counted_in_memory(gpu: None, tmp_path: Path) -> None:
    x = torch.ones(8, 128)[:, 28:]
    _, error = failed(tmp_path, lambda: double_compiled[(1,)](x, torch.ones(2048), 2048, BLOCK=2048))

    assert "x[996] of 800 elements, which lie between [0] and [995] in memory" in str(error)


def test_the_advice_for_an_access_outside_depends_on_its_mask(gpu: None, tmp_path: Path) -> None:
    _, masked = failed(tmp_path, lambda: double_compiled[(1,)](torch.ones(8), torch.ones(64), 64, BLOCK=64))
    _, unmasked = failed(tmp_path, lambda: of_rows[(1,)](torch.ones(8), torch.ones(64), BLOCK=16))
    _, atomic = failed(tmp_path, lambda: of_an_atomic[(1,)](torch.ones(8), torch.ones(64), BLOCK=16))

    assert "; check how the index and the strides are computed, and the mask" in str(masked)
    assert "; mask the access, " in str(unmasked)
    assert "; check how the index is computed, and the mask if the atomic has one, " in str(atomic)


def test_a_store_after_a_tensors_end_fails_and_changes_no_memory(gpu: None, tmp_path: Path) -> None:
    x, out = torch.ones(256), Block(0, 100, 200)
    run, _ = failed(tmp_path, lambda: double_compiled[(4,)](x, out.tensor, 256, BLOCK=64))
    (access,) = outside(run)

    assert (access.argument, access.access, access.element, access.where) == ("out", "store", 100, STORE)
    assert out.memory[400:] == bytes(800)
    assert out.tensor.tolist() == [2.0] * 64 + [0.0] * 36  # the program that failed stored nothing


def test_an_access_before_a_tensor_fails(gpu: None, tmp_path: Path) -> None:
    @triton.jit
    def before(x):
        tl.store(x - 3, 1.0)

    x = Block(10, 4, 0)
    run, _ = failed(tmp_path, lambda: before[(1,)](x.tensor))

    assert [(one.argument, one.element) for one in outside(run)] == [("x", -3)]
    assert x.memory == bytes(56)


def test_the_launch_that_failed_is_in_the_run_and_did_not_finish(gpu: None, tmp_path: Path) -> None:
    x, out = Block(0, 100, 200), torch.zeros(256)

    def program() -> None:
        double_compiled[(1,)](x.tensor, out, 64, BLOCK=64)
        double_compiled[(4,)](x.tensor, out, 256, BLOCK=64)

    run, _ = failed(tmp_path, program)

    assert [(one.index, one.finished) for one in run.launches()] == [(0, True), (1, False)]
    assert [one.launch for one in outside(run)] == [1]
    assert [one.launch for one in run.records(Access)] == [0]


def test_a_program_that_catches_the_error_is_recorded_further(gpu: None, tmp_path: Path) -> None:
    x, out = Block(0, 100, 200), torch.zeros(256)

    def program() -> None:
        with pytest.raises(OutOfBoundsError):
            double_compiled[(4,)](x.tensor, out, 256, BLOCK=64)
        double_compiled[(1,)](x.tensor, out, 64, BLOCK=64)

    run = recorded(tmp_path, program)

    assert [one.finished for one in run.launches()] == [False, True]


@pytest.mark.parametrize("atomic", ["add", "cas"])
def test_an_atomic_outside_is_a_load_and_a_store(gpu: None, tmp_path: Path, atomic: str) -> None:
    @triton.jit
    def add(x):
        tl.atomic_add(x + 5, 1)

    @triton.jit
    def swap(x):
        tl.atomic_cas(x + 5, 0, 1)

    x = Block(0, 4, 4)
    kernel = add if atomic == "add" else swap
    run, _ = failed(tmp_path, lambda: kernel[(1,)](x.tensor.view(torch.int32)))

    assert [(one.access, one.element) for one in outside(run)] == [("load", 5), ("store", 5)]
    assert x.memory == bytes(32)


def test_a_generated_kernel_and_an_interpreted_one_fail_alike(gpu: None, tmp_path: Path) -> None:
    x, out = Block(0, 100, 200), torch.zeros(256)
    kernel = InterpretedFunction(double)
    run, _ = failed(tmp_path, lambda: kernel[(4,)](x.tensor, out, 256, BLOCK=64))

    assert [(one.argument, one.element, one.where) for one in outside(run)] == [("x", 100, LOAD)]
    assert [(one.kernel_name, one.finished) for one in run.launches()] == [("double", False)]
    assert {arg.declared for one in run.launches() for arg in one.args if arg.tensor} == {"unknown"}


def test_a_kernel_of_a_compiled_function_fails(gpu: None, tmp_path: Path) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        double_compiled[(4,)](x, out, 10_000_000, BLOCK=64)
        return out + 1

    x = torch.ones(100)
    run, _ = failed(tmp_path, lambda: torch.compile(program)(x))

    assert [(one.access, one.element, one.where) for one in outside(run)][:1] == [("load", 100, LOAD)]


def test_a_tensor_without_elements_has_no_memory(gpu: None, tmp_path: Path) -> None:
    x, out = torch.zeros(0), torch.zeros(64)
    run, _ = failed(tmp_path, lambda: double_compiled[(1,)](x, out, 64, BLOCK=64))

    assert [one.access for one in outside(run)] == ["load"]


def test_a_thread_of_the_program_gets_the_error_itself(gpu: None, tmp_path: Path) -> None:
    x, out, errors = Block(0, 10, 100), torch.zeros(64), []

    def launch() -> None:
        try:
            double_compiled[(1,)](x.tensor, out, 64, BLOCK=64)
        except OutOfBoundsError as error:
            errors.append(error)

    def program() -> None:
        thread = threading.Thread(target=launch)
        thread.start()
        thread.join()

    run = recorded(tmp_path, program)

    assert (len(errors), len(outside(run))) == (1, 1)


# ---- allowed ----


def faulty(x, offset, value):
    tl.store(x + offset, tl.load(x + offset) + value)


def added(x, offset, value):
    tl.atomic_add(x + offset, value)


faulty_compiled, added_compiled = triton.jit(faulty), triton.jit(added)


def test_an_allowed_store_outside_of_every_storage_is_counted_and_does_not_happen(
    gpu: None, tmp_path: Path
) -> None:
    x, out = torch.ones(256), Block(0, 100, 200)
    run = recorded(
        tmp_path,
        lambda: double_compiled[(4,)](x, out.tensor, 256, BLOCK=64),
        allow_out_of_bounds=True,
    )
    (access,) = outside(run)

    assert (access.argument, access.access, access.count, access.inside) == ("out", "store", 156, False)
    assert (access.start, access.stop) == (out.tensor.data_ptr() + 400, out.tensor.data_ptr() + 1024)
    memory = torch.frombuffer(out.memory, dtype=torch.float32)
    assert memory.tolist() == [2.0] * 100 + [0.0] * 200
    assert [one.finished for one in run.launches()] == [True]


def test_an_allowed_load_outside_of_every_storage_gives_zero(gpu: None, tmp_path: Path) -> None:
    x, out = Block(0, 100, 200), torch.full((256,), 5.0)
    torch.frombuffer(x.memory, dtype=torch.float32).fill_(3.0)
    recorded(
        tmp_path,
        lambda: double_compiled[(4,)](x.tensor, out, 256, BLOCK=64),
        allow_out_of_bounds=True,
    )

    assert out.tolist() == [6.0] * 100 + [0.0] * 156


@pytest.mark.parametrize("kernel", [faulty_compiled, added_compiled])
@pytest.mark.parametrize("grid", [(1,), (3,)])
@pytest.mark.parametrize("offset", [10, -3, 1 << 40, -(1 << 40)])
def test_an_allowed_access_never_ends_the_process(
    gpu: None, tmp_path: Path, kernel: Any, grid: tuple[int], offset: int
) -> None:
    x = Block(8, 4, 20)
    run = recorded(tmp_path, lambda: kernel[grid](x.tensor, offset, 1.0), allow_out_of_bounds=True)

    assert {one.access for one in outside(run)} == {"load", "store"}
    assert torch.frombuffer(x.memory, dtype=torch.float32).tolist() == [0.0] * 32


def test_an_allowed_access_to_another_tensor_happens_as_on_a_gpu(gpu: None, tmp_path: Path) -> None:
    x, other = torch.ones(4), torch.zeros(4)
    distance = (other.data_ptr() - x.data_ptr()) // 4
    run = recorded(tmp_path, lambda: faulty_compiled[(1,)](x, distance + 2, 7.0), allow_out_of_bounds=True)

    assert other.tolist() == [0.0, 0.0, 7.0, 0.0]
    assert [(one.access, one.inside) for one in outside(run)] == [("load", False), ("store", False)]


def test_an_allowed_access_is_on_disk_before_it_happens(gpu: None, tmp_path: Path) -> None:
    writer, recorded_before = store.create(tmp_path, INFO), []
    x, other = torch.zeros(4), torch.zeros(4)
    distance = (other.data_ptr() - x.data_ptr()) // 4
    original = store.RunWriter.append

    def append(self: store.RunWriter, record: Any) -> None:
        original(self, record)
        if isinstance(record, OutOfBounds):
            run = store.Run(writer.path)
            recorded_before.append((other[0].item(), len(outside(run)), len(list(run.records(LaunchLine)))))

    with LaunchRecorder(writer, allow_out_of_bounds=True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.RunWriter, "append", append)
        faulty_compiled[(1,)](x, distance, 1.0)

    assert recorded_before == [(0.0, 1, 1), (0.0, 2, 1)]
    assert other[0].item() == 1.0


# ---- within the storage ----


def test_a_slice_that_is_overrun_is_recorded_and_not_fatal(gpu: None, tmp_path: Path) -> None:
    memory, out = torch.ones(256), torch.zeros(256)
    run = recorded(tmp_path, lambda: double_compiled[(4,)](memory[:100], out, 256, BLOCK=64))
    (access,) = outside(run)

    assert (access.argument, access.access, access.element, access.count) == ("x", "load", 100, 156)
    assert access.inside
    assert out.tolist() == [2.0] * 256


def test_an_access_outside_of_a_column_is_recorded(gpu: None, tmp_path: Path) -> None:
    memory, out = torch.ones(16, 4), torch.zeros(64)
    run = recorded(tmp_path, lambda: double_compiled[(1,)](memory[:, 0], out, 61, BLOCK=64))
    (access,) = outside(run)

    assert (access.argument, access.element, access.count, access.inside) == ("x", 1, 45, True)


def test_an_access_in_another_argument_is_not_out_of_bounds(gpu: None, tmp_path: Path) -> None:
    memory = torch.ones(128)
    run = recorded(tmp_path, lambda: double_compiled[(2,)](memory[:64], memory[64:], 64, BLOCK=32))

    assert outside(run) == []


def test_masked_lanes_are_not_accesses(gpu: None, tmp_path: Path) -> None:
    x, out = Block(0, 10, 0), torch.zeros(10)
    run = recorded(tmp_path, lambda: double_compiled[(1,)](x.tensor, out, 10, BLOCK=64))

    assert outside(run) == []


# ---- addresses ----


@triton.jit
def through_table(table, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    source = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.program_id(0) * BLOCK + at, tl.load(source + at, at < n), at < n)


def test_memory_that_addresses_point_to_is_not_out_of_bounds(gpu: None, tmp_path: Path) -> None:
    x, out = torch.ones(16), torch.zeros(32)  # allocated before the recording

    def program() -> None:
        y = torch.full((16,), 2.0)
        table = torch.tensor([x.data_ptr(), y.data_ptr()])
        through_table[(2,)](table, out, 16, BLOCK=16)

    run = recorded(tmp_path, program)

    assert outside(run) == []
    assert out.tolist() == [1.0] * 16 + [2.0] * 16


def test_memory_that_no_address_points_to_is_out_of_bounds(gpu: None, tmp_path: Path) -> None:
    x, out = Block(0, 16, 64), torch.zeros(32)
    table = torch.tensor([x.tensor.data_ptr()])
    run, _ = failed(tmp_path, lambda: through_table[(1,)](table, out, 32, BLOCK=32))

    assert [(one.access, one.inside) for one in outside(run)] == [("load", False)]


def test_memory_written_through_an_address_is_initialised(gpu: None, tmp_path: Path) -> None:
    @triton.jit
    def fill_at(address, BLOCK: tl.constexpr):
        tl.store(address.to(tl.pointer_type(tl.float32)) + tl.arange(0, BLOCK), 1.0)

    def program() -> None:
        x, out = torch.empty(64), torch.zeros(64)
        fill_at[(1,)](x.data_ptr(), BLOCK=32)
        double_compiled[(1,)](x, out, 64, BLOCK=64)

    run = recorded(tmp_path, program)

    assert [dict(one.uninitialised) for one in run.records(Access)] == [{}, {0: (32, 32)}]


# ---- without a recorder ----


def test_without_a_recorder_nothing_is_accessed_out_of_bounds_either(gpu: None) -> None:
    x, out = Block(0, 100, 200), Block(0, 100, 200)
    x.memory[400:] = b"\x01" * 800
    x.tensor.fill_(1)
    double_compiled[(4,)](x.tensor, out.tensor, 256, BLOCK=64)

    assert out.tensor.tolist() == [2.0] * 100
    assert out.memory[400:] == bytes(800)


def test_an_interpreted_kernel_on_the_virtual_gpu_cannot_leave_its_tensors(gpu: None) -> None:
    x, out = Block(0, 100, 200), Block(0, 100, 200)
    x.tensor.fill_(1)
    InterpretedFunction(double)[(4,)](x.tensor, out.tensor, 256, BLOCK=64)

    assert out.tensor.tolist() == [2.0] * 100
    assert out.memory[400:] == bytes(800)


def test_without_a_recorder_addresses_are_followed(gpu: None) -> None:
    x, y, out = torch.ones(16), torch.full((16,), 2.0), torch.zeros(32)
    through_table[(2,)](torch.tensor([x.data_ptr(), y.data_ptr()]), out, 16, BLOCK=16)

    assert out.tolist() == [1.0] * 16 + [2.0] * 16


# ---- the printed report ----


def test_show_prints_a_line_for_each_source_location_in_a_kernel(gpu: None, tmp_path: Path) -> None:
    memory = torch.ones(256)
    run = recorded(tmp_path, lambda: double_compiled[(4,)](memory[:100], memory[100:200], 156, BLOCK=64))
    lines = list(out_of_bounds_text(run))

    said = "#0 double: 56 stores outside of out, within its storage, first out[100] in program (1, 0, 0)"

    assert lines == [f"{said} ({STORE})"]
    assert any("out of bounds" in line and "56 stores" in line for line in run_text(run))
