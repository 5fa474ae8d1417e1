"""Triton's passes by their names on triton-opt's command line, read from the installed wheel."""

from __future__ import annotations

import ctypes
import mmap
import re
from pathlib import Path

import pytest
from recorded.kernels import needs_llvm_options
from triton._C import libtriton
from triton._C.libtriton import ir

from tracing.compiler.adders import Adder, adder, adders, new_context
from tracing.compiler.child import in_child
from tracing.compiler.opt.defaults import default
from tracing.compiler.opt.pipeline_text import PassText, options_in, passes_in
from tracing.compiler.symbols import function
from tracing.errors import Problem
from tracing.upstream.triton.libtriton import pointer_of

ADD_PASS = "_ZN4mlir13OpPassManager7addPassESt10unique_ptrINS_4PassESt14default_deleteIS2_EE"


class UniquePtr(ctypes.Structure):
    """Larger than two registers: returned in memory, like a C++ object with a destructor."""

    _fields_ = (("pass_", ctypes.c_void_p), ("_behind", ctypes.c_void_p * 2))


def text(one: Adder, options: dict[str, str]) -> PassText:
    manager = ir.pass_manager(new_context())
    one.add(manager, options)
    return passes_in(manager.get_pipeline_str())[0]


def test_a_pass_is_found_by_its_name_on_the_command_line() -> None:
    assert adder("tritongpu-coalesce").path == "passes.ttgpuir.add_coalesce"
    assert len(adders()) > 90


def test_every_option_of_every_adder_reaches_its_pass() -> None:
    values = {"bool": "true", "int": "5", "str": "word"}
    for one in adders().values():
        wanted = {
            parameter.option: values.get(parameter.kind) or list(parameter.choices)[-1]
            for parameter in one.parameters
            if parameter.option
        }
        assert text(one, wanted).options == {**one.fixed, **wanted}, one.path


def test_an_option_missing_on_the_command_line_has_its_default() -> None:
    assert text(adder("tritongpu-pipeline"), {}).options["num-stages"] == "3"
    assert text(adder("tritongpu-pipeline"), {"num-stages": "5"}).options["num-stages"] == "5"


def test_an_unknown_pass_is_refused_with_similar_names() -> None:
    with pytest.raises(Problem, match="no pass tritongpu-coalece") as caught:
        adder("tritongpu-coalece")

    assert "tritongpu-coalesce," in caught.value.remedy


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("num-stage=3", "has no option num-stage"),
        ("num-stages=three", "num-stages=three is not of its type"),
        ("dump-intermediate-steps=maybe", "dump-intermediate-steps=maybe is not of its type"),
    ],
)
def test_an_option_that_the_pass_cannot_take_is_a_problem(options: str, problem: str) -> None:
    with pytest.raises(Problem, match=problem):
        text(adder("tritongpu-pipeline"), options_in(options))


def test_an_option_that_the_bindings_fix_accepts_only_its_value() -> None:
    assert text(adder("canonicalize"), {"top-down": "true"}).options["top-down"] == "true"
    with pytest.raises(Problem, match="fix top-down to 'true'"):
        text(adder("canonicalize"), {"top-down": "false"})


def test_a_pipeline_is_read_with_its_nesting_and_options() -> None:
    passes = passes_in("builtin.module(cse, tt.func(a{x=1 y={p,q} z},b))")

    assert passes == (
        PassText("cse", {}, ("builtin.module",)),
        PassText("a", {"x": "1", "y": "p,q", "z": "true"}, ("builtin.module", "tt.func")),
        PassText("b", {}, ("builtin.module", "tt.func")),
    )


@pytest.mark.parametrize("pipeline", ["a(b", "a{x=1", "(a)", "a{x=1}b"])
def test_an_invalid_pipeline_is_refused(pipeline: str) -> None:
    with pytest.raises(Problem, match="in the pipeline"):
        passes_in(pipeline)


@needs_llvm_options
def test_the_listed_defaults_are_those_of_the_passes() -> None:
    compared = 0
    for symbol in _makers():
        made = in_child(lambda symbol=symbol: _made(symbol), 60).result
        if made is None:
            continue
        (one,) = passes_in(made)
        for parameter in adder(one.name).parameters:
            assert default(one.name, parameter.option) == one.options[parameter.option], one
            compared += 1

    assert compared > 20


def _makers() -> list[str]:
    # `createTritonGPUPipeline()` makes `tritongpu-pipeline`
    names = {re.sub("[-_]", "", name).lower() for name, one in adders().items() if one.parameters}
    with (
        Path(libtriton.__file__).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as all_,
    ):
        pattern = rb"\0(_ZN4mlir(?:\d+[a-z_]+)*\d+create([A-Z]\w*?)(?:Pass)?Ev)\0"
        symbols = {match[1].decode(): match[2].decode().lower() for match in re.finditer(pattern, all_)}
    return [symbol for symbol, name in symbols.items() if name in names]


def _made(symbol: str) -> str:
    # in a child: a library of another layout would crash this process
    made, manager = function(symbol, UniquePtr)(), ir.pass_manager(new_context())
    function(ADD_PASS, None, ctypes.c_void_p, ctypes.c_void_p)(pointer_of(manager), ctypes.addressof(made))
    text: str = manager.get_pipeline_str()
    return text
