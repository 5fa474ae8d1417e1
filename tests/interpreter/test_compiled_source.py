"""What the interpreter executes is what Triton compiles: source, constants, types of arguments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tracing.errors import Problem
from tracing.launch.kernel_module import kernel_module
from tracing.replay.loaded_kernel import load_kernel
from tracing.virtual_gpu import virtual_gpu

SIZE = tl.constexpr(8)


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@triton.jit
def template(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, EXPRESSION(tl.load(x + at)))  # type: ignore[name-defined]  # noqa: F821


def with_source(kernel: Any, old: str, new: str) -> Any:
    """A kernel in whose source a text is replaced, as generators of kernels do."""
    made = triton.JITFunction(kernel.fn)
    made._unsafe_update_src(kernel.src.replace(old, new))
    return made


def test_a_source_that_the_program_replaced_is_executed() -> None:
    x, y = torch.ones(8), torch.zeros(8)

    with_source(template, "EXPRESSION", "2 +")[(1,)](x, y, BLOCK=8)
    assert y.tolist() == [3.0] * 8
    with_source(template, "EXPRESSION", "4 +")[(1,)](x, y, BLOCK=8)
    assert y.tolist() == [5.0] * 8


def test_a_source_that_the_program_replaced_is_recorded() -> None:
    made = kernel_module(with_source(template, "EXPRESSION", "-"))
    y = torch.zeros(4)

    assert made is not None and made.undefined == ()
    with load_kernel(made.text + "CONSTANTS = {'BLOCK': 4}\nOPTIONS = {}\n") as kernel:
        kernel.interpret({"x": torch.ones(4), "y": y}, (1, 1, 1))
    assert y.tolist() == [-1.0] * 4


@triton.jit
def asserting(y, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % SIZE == 0, f"{BLOCK=} is no multiple of 8")
    tl.store(y + tl.arange(0, BLOCK), 1.0)


def test_what_only_a_compile_can_check_is_not_executed() -> None:
    y = torch.zeros(16)

    asserting[(1,)](y, BLOCK=16)

    assert y.tolist() == [1.0] * 16


@triton.jit
def sign(x, y):
    if x < y:
        return -1
    elif x == y:
        return 0
    else:
        return 1


@triton.jit
def signs(x, y, z, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(z + at, tl.map_elementwise(sign, tl.load(x + at), tl.load(y + at)))


def test_a_function_of_elements_may_return_a_literal() -> None:
    z = torch.zeros(4, dtype=torch.int32)

    signs[(1,)](torch.tensor([1, 5, 3, 0]), torch.tensor([2, 5, 1, 1]), z, BLOCK=4)

    assert z.tolist() == [-1, 0, 1, -1]


@triton.jit
def counted(y, kind: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(y, tl.sum(tl.full((BLOCK,), 1, kind), dtype=kind).to(tl.int32))


@pytest.mark.parametrize(("kind", "expected"), [(tl.int1, 0), (tl.int8, -128), (tl.int32, 128)])
def test_a_sum_has_the_bits_of_its_type(kind: Any, expected: int) -> None:
    y = torch.zeros(1, dtype=torch.int32)

    counted[(1,)](y, kind, BLOCK=128)

    assert y.item() == expected


@triton.jit
def histogram(x, y, BLOCK: tl.constexpr, BINS: tl.constexpr):
    tl.store(y + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, BLOCK)), BINS))


def test_a_histogram_counts_numbers_below_its_number_of_bins() -> None:
    y = torch.zeros(4, dtype=torch.int32)

    histogram[(1,)](torch.tensor([0, 3, 3, 4, 4, 4, 9, 2], dtype=torch.int32), y, BLOCK=8, BINS=4)

    assert y.tolist() == [1, 0, 1, 2]


def stored(y, value):
    tl.store(y, value)


def test_a_number_that_is_passed_as_bfloat16_keeps_its_value() -> None:
    y = torch.zeros(1)
    stored.__annotations__["value"] = tl.bfloat16

    triton.jit(stored)[(1,)](y, 42.0)

    assert y.item() == 42


@triton.jit
def lowest(dtype: tl.constexpr):
    kind = dtype.value
    return -(2 ** (kind.int_bitwidth - 1)) if kind.is_int() else float("-inf")


@triton.jit
def flagged(y, negate, BLOCK: tl.constexpr):
    value = tl.full((BLOCK,), lowest(y.dtype.element_ty), y.dtype.element_ty)
    if negate:
        value = -(value + 1)
    tl.store(y + tl.arange(0, BLOCK), tl.where(negate, value, value))


@pytest.mark.parametrize(("negate", "expected"), [(False, -(2**15)), (True, 2**15 - 1)])
def test_the_value_of_a_constant_and_a_flag_are_what_the_compiler_sees(negate: bool, expected: int) -> None:
    y = torch.zeros(4, dtype=torch.int16)
    flagged[(1,)](y, negate, BLOCK=4)

    assert y.tolist() == [expected] * 4


@triton.jit
def first_row(x, y, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK), x.load([0, 0]).reshape(BLOCK).to(tl.int32))


def test_a_descriptor_of_a_reinterpreted_tensor_reads_that_tensor() -> None:
    x, y = torch.arange(32, dtype=torch.int16).reshape(2, 16), torch.zeros(16, dtype=torch.int32)
    described = TensorDescriptor(triton.reinterpret(x, tl.uint16), [2, 16], [16, 1], [1, 16])

    first_row[(1,)](described, y, BLOCK=16)

    assert y.tolist() == [*range(16)]


def test_a_kernel_of_which_only_ir_is_given_is_refused(tmp_path: Path) -> None:
    y = torch.zeros(16)
    compiled = asserting[(1,)](y, BLOCK=16)
    file = tmp_path / "asserting.ttir"
    file.write_text(compiled.asm["ttir"])

    with pytest.raises(Problem, match=r"of which only IR is given of .*asserting\.ttir"):
        triton.compile(str(file))[(1, 1, 1)](y)
