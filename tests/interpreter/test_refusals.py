"""Launches that the virtual GPU refuses, and operations that Triton's interpreter lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer

from tracing import interpreter
from tracing.errors import Problem
from tracing.interpreter.batch.batch_builder import BatchBuilder
from tracing.interpreter.gates import watched
from tracing.interpreter.guard import Guard
from tracing.upstream.patch import replaced
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


def line(kernel: Any, number: int) -> str:
    return f"test_refusals.py:{kernel.fn.__code__.co_firstlineno + number}"


# ---- what cannot be executed


@triton.jit
def inner(x):
    return tl.exp(x)


@triton.jit
def outer(x):
    tl.store(x, inner(tl.load(x)))


def test_an_error_of_the_interpreter_names_operation_kernel_and_line() -> None:
    def missing(self: object, *operands: object) -> object:
        raise NotImplementedError("no exp")

    with replaced(BatchBuilder, "create_exp", missing), pytest.raises(Problem) as raised:
        outer[(1,)](torch.ones(1))

    assert raised.value.problem == (
        f"tl.exp (NotImplementedError: no exp) of outer at {line(inner, 2)} can be compiled but not executed "
        "without a GPU; the launch is not judged"
    )


@triton.jit
def misspelt(x):
    tl.stroe(x, 1)


def test_a_name_that_the_language_lacks_is_an_error_of_the_kernel() -> None:
    with pytest.raises(Problem) as raised:
        interpreter.launch(misspelt, {"x": torch.ones(1)}, (), (1, 1, 1))

    expected = "module 'triton.language' has no attribute 'stroe'"
    assert raised.value.problem == f"misspelt at {line(misspelt, 2)}: {expected}"


@triton.jit
def timed(out):
    tl.store(out, globaltimer())


def test_inline_assembly_of_the_language_is_named() -> None:
    with pytest.raises(Problem, match=rf"globaltimer.*of timed at {line(timed, 2)}.*not judged"):
        timed[(1,)](torch.ones(1, dtype=torch.int64))


def test_errors_of_watchers_are_raised_as_they_are() -> None:
    class Watcher(Guard):
        def note(self, *access: object) -> None:
            raise ZeroDivisionError

    with watched([Watcher([])]), pytest.raises(ZeroDivisionError):
        outer[(1,)](torch.ones(1))


# ---- asserts


@triton.jit
def asserts(x, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.device_assert(tl.load(x + at) > 0, "x is positive")
    tl.store(x + at, 7.0)


def test_a_device_assert_fails_if_the_kernel_was_compiled_with_debug() -> None:
    x = torch.tensor([1.0, 2.0, 0.0, 4.0])
    expected = rf"device_assert of asserts at {line(asserts, 3)}, program \(1, 0, 0\) fails: x is positive"
    with pytest.raises(AssertionError, match=expected):
        asserts[(2,)](x, 2, debug=True)

    asserts[(2,)](x, 2)
    assert x.tolist() == [7.0] * 4
    asserts[(2,)](x, 2, debug=True)


@triton.jit
def assumes(x, n):
    tl.assume(n % 8 == 0)
    tl.assume(tl.program_id(0) < 1)
    tl.store(x + tl.program_id(0), 7.0)


def test_an_assumption_that_is_false_is_a_fault_of_the_kernel() -> None:
    x = torch.zeros(2)

    assumes[(1,)](x, 8)
    for n, grid, number in ((9, 1, 2), (8, 2, 3)):
        where = rf"tl.assume of assumes at {line(assumes, number)}, program \({grid - 1}, 0, 0\)"
        with pytest.raises(AssertionError, match=f"{where} is false"):
            assumes[(grid,)](x, n)


@triton.jit
def overflows(x):
    tl.store(x, tl.load(x) + 1)


def test_overflow_of_integers_fails_if_the_kernel_was_compiled_with_debug() -> None:
    with pytest.raises(AssertionError, match="int32 overflow"):
        overflows[(1,)](torch.tensor([2**31 - 1], dtype=torch.int32), debug=True)


# ---- map_elementwise


@triton.jit
def selu(x, alpha):
    if x > 0:
        return x
    else:
        return alpha * (tl.exp(x) - 1)


@triton.jit
def sum_and_difference(x0, x1, y0, y1):
    return x0 + y0, x1 + y1, (x0 - y0).to(tl.int32), (x1 - y1).to(tl.int32)


@triton.jit
def mapped(x, y, out, differences, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    tl.store(out + at, tl.map_elementwise(selu, a, 2.0 + tl.zeros((1,), tl.float32)))
    sums, less = tl.map_elementwise(sum_and_difference, a, tl.load(y + at), pack=2)
    tl.store(out + N + at, sums)
    tl.store(differences + at, less)


def test_a_function_is_mapped_over_elements() -> None:
    x, y, out = torch.arange(-128.0, 128.0) / 64, torch.full((256,), 3.0), torch.zeros(2, 256)
    differences = torch.zeros(256, dtype=torch.int32)
    mapped[(1,)](x, y, out, differences, 256)

    torch.testing.assert_close(out[0], torch.where(x > 0, x, 2 * (x.exp() - 1)))
    assert torch.equal(out[1], x + y)
    assert torch.equal(differences, (x - y).int())


# ---- atomics of tensor descriptors


@triton.jit
def reduced(x, out, KIND: tl.constexpr, N: tl.constexpr):
    value = tl.make_tensor_descriptor(x, (N, N), (N, 1), (N, N)).load((0, 0))
    target = tl.make_tensor_descriptor(out, (N - 1, N), (N, 1), (N, N))
    if KIND == 0:
        target.atomic_add((0, 0), value)
    elif KIND == 1:
        target.atomic_min((0, 0), value)
    elif KIND == 2:
        target.atomic_max((0, 0), value)
    else:
        target.atomic_xor((0, 0), value)


def _reduced(kind: int, dtype: torch.dtype) -> Any:
    x, out = torch.full((8, 8), 5).to(dtype), torch.full((8, 8), 3).to(dtype)
    if dtype == torch.uint32:
        x = torch.full((8, 8), -5, dtype=torch.int32).view(dtype)
    reduced[(1,)](x, out, kind, 8)
    assert (out[7].to(torch.int64) == 3).all()  # out of the bounds of the descriptor
    return out[0, 0].item()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int32])
def test_a_descriptor_adds_to_memory(dtype: torch.dtype) -> None:
    assert _reduced(0, dtype) == 8


def test_a_descriptor_updates_integers_in_memory() -> None:
    assert [_reduced(kind, torch.int32) for kind in (1, 2, 3)] == [3, 5, 3 ^ 5]
    assert [_reduced(kind, torch.uint32) for kind in (1, 2)] == [3, 2**32 - 5]


def test_a_minimum_of_floats_by_a_descriptor_is_refused() -> None:
    with pytest.raises(Problem, match="MIN of fp16 of reduced"):
        _reduced(1, torch.float16)


@triton.jit
def assembled(x):
    lanes: tl.constexpr = """
        {
            mov.u32      $0, %laneid;
            add.u32      $0, $0, 1;
            shl.b32      $0, $0, 3;
        }
    """
    tl.store(x, tl.inline_asm_elementwise(lanes, "=r", [], dtype=tl.int32, is_pure=True, pack=1))


def test_inline_assembly_is_shown_on_one_line() -> None:
    with pytest.raises(Problem) as raised:
        assembled[(1,)](torch.zeros(1, dtype=torch.int32))

    assert raised.value.problem.startswith("inline assembly '{ mov.u32 $0, %laneid; add.u32")
