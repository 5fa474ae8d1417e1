"""Read and write sets of real kernels, executed with TRITON_INTERPRET=1 and on the virtual GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton._C.libtriton import interpreter as native
from triton.runtime.interpreter import InterpretedFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from tracing.interpreter.gates import watched
from tracing.interpreter.guard import tensors_in_use
from tracing.launch.memory.accesses import Accesses
from tracing.launch.memory.out_of_bounds import OutsideAccesses
from tracing.upstream.triton.interpreter import InterpreterBuilder
from tracing.virtual_gpu import virtual_gpu

TRITON = tuple(int(part) for part in triton.__version__.split(".")[:2])


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


def launch(kernel: Callable[..., None], /, grid: int = 1, **arguments: Any) -> Accesses:
    bases = {name: getattr(value, "base", value) for name, value in arguments.items()}
    accesses = Accesses("kernel", {name: base for name, base in bases.items() if hasattr(base, "stride")})
    with watched([accesses]):
        InterpretedFunction(kernel)[(grid,)](**arguments)
    return accesses


def line(kernel: Callable[..., None], number: int) -> str:
    return f"test_interpreted.py:{kernel.__code__.co_firstlineno + number}"


def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


def double(x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(x + at, value * 2)


def fill_then_read(buffer, out, FILLED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(buffer + at, at, at < FILLED)
    tl.store(out + at, tl.load(buffer + BLOCK - 1 - at))


# ---- roles ----


def test_an_addition_reads_its_operands_and_writes_its_result() -> None:
    x, y, out = torch.ones(100), torch.ones(100), torch.empty(100)
    accesses = launch(add, 2, x=x, y=y, out=out, n=100, BLOCK=64)

    assert [accesses.role(name) for name in ("x", "y", "out")] == ["in", "in", "out"]
    assert accesses.outside == []
    assert torch.equal(out, x + y)


def test_an_update_in_place_is_in_out() -> None:
    assert launch(double, 2, x=torch.ones(64), BLOCK=32).role("x") == "in_out"


def test_an_argument_that_is_only_written_is_out_whatever_its_name_says() -> None:
    def kernel(in_out_ptr0):
        tl.store(in_out_ptr0 + tl.arange(0, 16), 1.0)

    assert launch(kernel, in_out_ptr0=torch.empty(16)).role("in_out_ptr0") == "out"


def test_reading_the_launchs_own_write_is_no_read() -> None:
    accesses = launch(fill_then_read, buffer=torch.zeros(32), out=torch.zeros(32), FILLED=32, BLOCK=32)

    assert accesses.role("buffer") == "out"


def test_reading_one_element_more_than_was_written_is_a_read() -> None:
    accesses = launch(fill_then_read, buffer=torch.zeros(32), out=torch.zeros(32), FILLED=31, BLOCK=32)

    assert accesses.role("buffer") == "in_out"


def test_a_program_may_read_what_an_earlier_program_wrote() -> None:
    def kernel(x):
        index = tl.program_id(0)
        previous = tl.load(x + index - 1, index > 0, other=0.0)
        tl.store(x + index, previous + 1)

    assert launch(kernel, 8, x=torch.zeros(8)).role("x") == "out"


def test_lanes_that_are_masked_off_read_and_write_nothing() -> None:
    accesses = launch(add, x=torch.ones(64), y=torch.ones(64), out=torch.empty(64), n=0, BLOCK=64)

    assert {accesses.role(name) for name in ("x", "y", "out")} == {"none"}
    assert accesses.outside == []


def test_atomics_read_and_write() -> None:
    def kernel(total, lock, x):
        tl.atomic_add(total, tl.load(x + tl.program_id(0)))
        tl.atomic_cas(lock, 0, 1)

    tensors = {"total": torch.zeros(1), "lock": torch.zeros(1, dtype=torch.int32), "x": torch.ones(4)}
    accesses = launch(kernel, 4, **tensors)

    assert [accesses.role(name) for name in tensors] == ["in_out", "in_out", "in"]


def test_an_atomic_on_what_was_zeroed_before_is_a_write() -> None:
    def kernel(total):
        tl.store(total, 0.0)
        tl.atomic_add(total, 1.0)

    assert launch(kernel, total=torch.empty(1)).role("total") == "out"


def test_a_tensor_passed_twice_has_the_role_of_both() -> None:
    x = torch.ones(64)
    accesses = launch(add, x=x, y=torch.ones(64), out=x, n=64, BLOCK=64)

    assert accesses.role("x") == accesses.role("out") == "in_out"


def test_views_of_one_storage_are_distinguished_by_their_elements() -> None:
    storage = torch.ones(128)
    accesses = launch(add, x=storage[:64], y=storage[:32], out=storage[64:], n=64, BLOCK=64)

    assert [accesses.role(name) for name in ("x", "y", "out")] == ["in", "in", "out"]
    assert accesses.outside == []  # x follows y in memory


def test_a_strided_view_reaches_to_its_last_element() -> None:
    def kernel(column, stride, ROWS: tl.constexpr):
        at = tl.arange(0, ROWS) * stride
        tl.store(column + at, tl.load(column + at) + 1)

    accesses = launch(kernel, column=torch.ones(16, 8)[:, 3], stride=8, ROWS=16)

    assert accesses.role("column") == "in_out"
    assert accesses.outside == []


@pytest.mark.skipif(TRITON >= (3, 9), reason="block pointers were removed in Triton 3.9")
def test_block_pointers_are_followed() -> None:
    def kernel(x, out, n):
        block = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
        value = tl.load(block, boundary_check=(0,))
        tl.store(tl.make_block_ptr(out, (n,), (1,), (0,), (16,), (0,)), value, boundary_check=(0,))

    accesses = launch(kernel, x=torch.ones(12), out=torch.empty(12), n=12)

    assert (accesses.role("x"), accesses.role("out")) == ("in", "out")
    assert accesses.outside == []


def test_tensor_descriptors_made_by_the_host_and_by_the_kernel_are_followed() -> None:
    def kernel(x, out, n):
        made = tl.make_tensor_descriptor(out, (n, n), (n, 1), (8, 8))
        made.store((0, 0), x.load((0, 0)))

    x = TensorDescriptor.from_tensor(torch.ones(16, 16), [8, 8])
    accesses = launch(kernel, x=x, out=torch.empty(16, 16), n=16)

    assert (accesses.role("x"), accesses.role("out")) == ("in", "out")


def test_gather_and_scatter_of_descriptors_are_followed() -> None:
    def kernel(x, out):
        rows = tl.arange(0, 8) * 2
        out.scatter(x.gather(rows, 0), rows, 0)

    tensors = {name: TensorDescriptor.from_tensor(torch.ones(16, 16), [1, 16]) for name in ("x", "out")}
    accesses = launch(kernel, **tensors)

    assert (accesses.role("x"), accesses.role("out")) == ("in", "out")


# ---- out of bounds ----


def test_an_access_out_of_bounds_names_argument_program_and_line() -> None:
    storage = torch.ones(128)  # the memory after x exists
    start, stop = storage.data_ptr() + 400, storage.data_ptr() + 512
    accesses = launch(double, 4, x=storage[:100], BLOCK=32)

    assert accesses.outside == [
        OutsideAccesses("x", "load", 100, 100, (3, 0, 0), start, stop, 28, True, line(double, 2), True),
        OutsideAccesses("x", "store", 100, 100, (3, 0, 0), start, stop, 28, True, line(double, 3), True),
    ]


def test_accesses_out_of_bounds_by_one_line_are_one_with_the_first_program() -> None:
    accesses = launch(double, 4, x=torch.ones(128)[:40], BLOCK=32)

    assert [(access.program, access.accesses) for access in accesses.outside] == [((1, 0, 0), 88)] * 2


def test_an_access_before_the_first_element_has_a_negative_index() -> None:
    def kernel(x):
        tl.load(x - 2)

    (access,) = launch(kernel, x=torch.ones(8)[4:]).outside

    assert (access.argument, access.element) == ("x", -2)


def test_an_access_half_inside_is_out_of_bounds_and_counts_for_the_argument() -> None:
    def kernel(x):
        tl.store(x.to(tl.pointer_type(tl.int64)), 1)

    accesses = launch(kernel, x=torch.zeros(4, dtype=torch.int32)[:1])

    assert (accesses.role("x"), len(accesses.outside)) == ("out", 1)


def test_each_address_out_of_bounds_belongs_to_the_nearest_argument() -> None:
    def kernel(x):
        tl.load(x + tl.arange(0, 8))

    storage = torch.ones(8)
    accesses = Accesses("kernel", {"x": storage[:1], "y": storage[7:]})
    with watched([accesses]):
        InterpretedFunction(kernel)[(1,)](storage)

    assert [(access.argument, access.accesses) for access in accesses.outside] == [("x", 3), ("y", 3)]


# ---- the virtual GPU ----

add_compiled, double_compiled = triton.jit(add), triton.jit(double)


def test_launches_on_the_virtual_gpu_are_tracked(gpu: None) -> None:
    tensors = {name: torch.ones(100) for name in ("x", "y", "out")}
    accesses = Accesses("kernel", tensors)
    with watched([accesses]):
        add_compiled[(2,)](**tensors, n=100, BLOCK=64)

    assert [accesses.role(name) for name in tensors] == ["in", "in", "out"]
    assert accesses.outside == []


def test_the_virtual_gpu_names_program_and_line_of_an_access_out_of_bounds(gpu: None) -> None:
    x = torch.ones(128)[:100]
    accesses = Accesses("kernel", {"x": x})
    with watched([accesses]):
        double_compiled[(4,)](x, BLOCK=32)

    access = accesses.outside[0]
    assert (access.argument, access.kind, access.element) == ("x", "load", 100)
    assert (access.program, access.where) == ((3, 0, 0), line(double, 2))


@triton.jit
def add_atomically(total, x):
    tl.atomic_add(total + tl.arange(0, 4), tl.load(x + tl.arange(0, 4)))


def test_atomics_on_bfloat16_are_tracked_on_the_virtual_gpu(gpu: None) -> None:
    tensors = {name: torch.ones(4, dtype=torch.bfloat16) for name in ("total", "x")}
    accesses = Accesses("kernel", tensors)
    with watched([accesses]):
        add_atomically[(1,)](**tensors)

    assert [accesses.role(name) for name in tensors] == ["in_out", "in"]


# ---- entering and leaving ----


def test_everything_is_restored_after_an_exception() -> None:
    before = dict(vars(native)), dict(vars(InterpreterBuilder))
    with pytest.raises(ZeroDivisionError), watched([Accesses("kernel", {"x": torch.ones(1)})]):
        assert dict(vars(native)) != before[0]
        raise ZeroDivisionError

    assert before == (dict(vars(native)), dict(vars(InterpreterBuilder)))


def test_an_inner_tracker_sees_its_own_launches_and_the_outer_one_all() -> None:
    x, y = torch.ones(32), torch.ones(32)
    outer = Accesses("kernel", {"x": x, "y": y})
    with watched([outer]):
        InterpretedFunction(double)[(1,)](x, BLOCK=32)
        inner = launch(double, x=y, BLOCK=32)
        after = launch(double, x=x[:1], BLOCK=32)

    assert (outer.role("x"), outer.role("y"), inner.role("x")) == ("in_out", "in_out", "in_out")
    assert (inner.outside, outer.outside) == ([], [])
    assert {access.accesses for access in after.outside} == {31}


def test_launches_of_other_threads_are_not_seen() -> None:
    accesses = Accesses("kernel", {"x": torch.ones(32)})
    with watched([accesses]):
        other = threading.Thread(target=launch, args=(double,), kwargs={"x": torch.ones(32), "BLOCK": 32})
        other.start()
        other.join()

    assert (accesses.role("x"), accesses.outside) == ("none", [])


def test_a_tensor_on_another_device_is_refused() -> None:
    with pytest.raises(ValueError, match="x is on meta"):
        Accesses("kernel", {"x": torch.ones(1, device="meta")})


def test_tensors_that_outlive_a_vmap_are_not_asked_for_their_storage() -> None:
    kept: list[torch.Tensor] = []
    torch.vmap(lambda row: kept.append(row) or row + 1)(torch.ones(3, 4))

    assert not any(one is kept[0] for one in tensors_in_use())


def test_tensors_that_outlive_a_functionalization_have_no_memory_to_be_in_use() -> None:
    kept: list[torch.Tensor] = []
    torch.func.functionalize(lambda x: kept.append(x) or x + 1)(torch.ones(3))

    assert not any(one is kept[0] for one in tensors_in_use())
