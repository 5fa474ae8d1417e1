"""A kernel's module as text: it includes what the kernel uses, and names what it cannot include."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from data import gluon_kernels, helped
from triton.runtime.jit import JITFunction

from tracing.launch.kernel_module import kernel_module
from tracing.replay.loaded_kernel import load_kernel
from tracing.upstream.triton.jit import GluonJITFunction
from tracing.virtual_gpu import virtual_gpu

WEIGHTS = {"a": 1}
HALF = tl.constexpr(0.5)


def text(kernel: JITFunction[Any]) -> str:
    made = kernel_module(kernel)
    assert made is not None and made.undefined == ()
    return made.text


def undefined(kernel: JITFunction[Any]) -> tuple[str, ...]:
    made = kernel_module(kernel)
    assert made is not None
    return made.undefined


def test_the_module_includes_the_functions_constants_and_imports_that_the_kernel_uses() -> None:
    made = text(helped.helped.fn)

    for line in (
        "import triton.language.extra.libdevice as libdevice",
        "from torch._inductor.runtime.triton_helpers import promote_to_tensor",
        "LOWEST = triton.language.constexpr(float('-inf'))",
        "WIDE = triton.language.dtype('fp32')",
        "def scaled(x, by: tl.constexpr = SCALE):",
        "@triton.constexpr_function",
        "@triton.jit(do_not_specialize=['n'])",
    ):
        assert line in made.splitlines()
    assert "autotune" not in made


def scaling(factor: int) -> JITFunction[Any]:
    @triton.jit
    def inner(x_ptr, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(x_ptr + at, tl.load(x_ptr + at) * factor)

    inner.__name__ = f"scaled_by_{factor}"
    return inner


def test_a_kernel_that_was_renamed_is_defined_by_its_name() -> None:
    x = torch.ones(16)

    with load_kernel(text(scaling(3)) + "CONSTANTS = {'BLOCK': 16}\nOPTIONS = {}\n") as kernel:
        kernel.interpret({"x_ptr": x}, (1, 1, 1))

    assert (kernel.function.__name__, x.tolist()) == ("scaled_by_3", [3.0] * 16)


def test_a_kernel_whose_name_is_none_of_python_is_not_defined() -> None:
    kernel = scaling(3)
    kernel.__name__ = "scaled<3>"

    assert undefined(kernel) == ("scaled<3>",)


def test_a_loaded_kernel_computes_what_the_kernel_does() -> None:
    x, out = torch.rand(100), torch.zeros(100)
    constants = "CONSTANTS = {'MODE': 'exp', 'ACC': tl.float32, 'BLOCK': 64}\nOPTIONS = {}\n"

    with load_kernel(text(helped.helped.fn) + constants) as kernel:
        kernel.interpret({"x_ptr": x, "out_ptr": out, "n": 100}, (2, 1, 1))

    assert torch.allclose(out, x.exp() * 0.5 + 2)


@triton.jit
def of_a_dictionary(out_ptr):
    tl.store(out_ptr, WEIGHTS["a"])


@triton.jit
def of_nothing(out_ptr):
    tl.store(out_ptr, missing)  # type: ignore[name-defined]  # noqa: F821


@triton.jit
def of_a_decorated_function(out_ptr):
    tl.store(out_ptr, remembered(1))


@functools.cache
def remembered(n: int) -> int:
    return n


@triton.jit
def of_another_builtin(out_ptr):
    tl.store(out_ptr, builtin_of_the_program(1))


@tl.core.builtin
def builtin_of_the_program(n: Any, _semantic: Any = None) -> Any:
    return n


@triton.jit
def doubled(out_ptr):
    tl.store(out_ptr, helped.tl.load(out_ptr) + helped.scaled(2.0) * helped.SCALE)


def of_two_modules() -> JITFunction[Any]:
    helped = math

    @triton.jit
    def both(out_ptr):
        doubled(out_ptr)
        tl.store(out_ptr, helped.pi)

    return both


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (lambda: of_a_dictionary, "WEIGHTS"),
        (lambda: of_nothing, "missing"),
        (lambda: of_a_decorated_function, "remembered"),
        (lambda: of_another_builtin, "builtin_of_the_program"),
        (of_two_modules, "helped"),
    ],
)
def test_an_object_without_source_text_is_named(kernel: Callable[[], JITFunction[Any]], name: str) -> None:
    assert undefined(kernel()) == (name,)


def test_a_module_of_the_program_has_the_members_that_the_kernel_uses() -> None:
    out = torch.zeros(1)

    with load_kernel(text(doubled) + "CONSTANTS = {}\nOPTIONS = {}\n") as kernel, virtual_gpu():
        compiled = kernel.function[1, 1, 1](out)

    assert 'helped = type(triton)("helped")' in text(doubled)
    assert out.tolist() == [1.5]  # (2 / 2 + 4 // 2) / 2
    assert "tt.store" in compiled.asm["ttir"]


@triton.jit
def with_calls(out_ptr, n: tl.constexpr):
    nothing = tl.zeros([n], sum_type(out_ptr.dtype.element_ty))
    tl.store(out_ptr + tl.arange(0, n), helped.scaled(nothing).to(tl.float32))


@tl.constexpr
def sum_type(dtype: tl.dtype) -> tl.dtype:
    return tl.float32 if is_half(dtype) else dtype


def is_half(dtype: tl.dtype) -> bool:
    return dtype.is_fp16()


def test_a_member_that_is_called_and_a_function_that_is_a_constant_are_included() -> None:
    out = torch.zeros(4)

    made = text(with_calls)
    with load_kernel(made + "CONSTANTS = {'n': 4}\nOPTIONS = {}\n") as kernel:
        kernel.interpret({"out_ptr": out}, (1, 1, 1))

    assert "@triton.language.constexpr\ndef sum_type" in made
    assert out.tolist() == [2.0] * 4


def test_two_objects_of_one_name_are_not_mixed_up() -> None:
    scaled, SCALE = helped.scaled, tl.constexpr(2.0)

    @triton.jit
    def twice(out_ptr):
        tl.store(out_ptr, scaled(1.0) * SCALE)

    assert undefined(twice) == ("SCALE",)


def test_a_renamed_function_and_a_closure_are_included() -> None:
    other, count = helped.scaled, tl.constexpr(3)

    @triton.jit
    def renamed(out_ptr):
        tl.store(out_ptr, other(1.0) * count)

    lines = text(renamed).splitlines()
    assert "other = scaled" in lines
    assert "count = triton.language.constexpr(3)" in lines


def test_an_inductor_kernel_without_its_module_includes_inductors_usual_imports() -> None:
    @triton.jit
    def triton_poi(out_ptr):
        tl.store(out_ptr, HALF)

    triton_poi.fn = None

    assert undefined(triton_poi) == ("HALF",)
    assert "import triton.language as tl" in (kernel_module(triton_poi) or math).text  # type: ignore[attr-defined]


def test_an_object_that_is_no_kernel_has_no_module() -> None:
    assert kernel_module(None) is None


@triton.jit
def squared(x):
    return x * x * HALF


@triton.jit
def applying(x_ptr, APPLY: tl.constexpr):
    tl.store(x_ptr, APPLY(tl.load(x_ptr)))


def test_the_module_includes_the_functions_that_the_kernel_receives_as_constants() -> None:
    made = kernel_module(applying, [squared, tl.sigmoid])

    assert made is not None and made.undefined == ()
    lines = made.text.splitlines()
    assert "from triton.language.standard import sigmoid" in lines
    assert "HALF = triton.language.constexpr(0.5)" in lines
    assert lines.index("def squared(x):") < lines.index("def applying(x_ptr, APPLY: tl.constexpr):")


def test_a_gluon_kernel_is_written_as_one() -> None:
    made = text(gluon_kernels.reversed_softmax)

    assert "@triton.jit" not in made
    with load_kernel(made + "CONSTANTS = {}\nOPTIONS = {}\n") as kernel:
        assert isinstance(kernel.function, GluonJITFunction)
