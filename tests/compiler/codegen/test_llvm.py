"""LLVM with passes left out, ptxas at every level, and the child processes in which both run."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

import pytest
from recorded.kernels import Subject, needs_llvm_options, record, subject
from triton._C import libtriton

from tracing.compiler import symbols
from tracing.compiler.child import in_child
from tracing.compiler.codegen import llvm, ptxas
from tracing.errors import Problem


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return subject(record(tmp_path_factory.mktemp("runs"), "softmax"), "softmax")


@pytest.fixture(scope="module")
def ptx(softmax: Subject) -> str:
    return str(softmax.recorded["ptx"])


@needs_llvm_options
def test_llvm_with_all_passes_reproduces_the_recorded_ptx_and_lists_its_passes(softmax: Subject) -> None:
    ended = softmax.variants("ptx").limited(None)

    assert ended.result["ptx"] == softmax.recorded["ptx"]
    names = ended.result["passes"].splitlines()
    assert len(names) > 50
    assert {"simplifycfg on softmax", "gvn on softmax"} <= set(names)


@needs_llvm_options
def test_a_limit_leaves_out_exactly_the_later_passes(softmax: Subject) -> None:
    result = llvm.limited(softmax.from_mlir, 7, seconds=60)

    assert [one.index for one in result.passes if one.ran] == [1, 2, 3, 4, 5, 6, 7]
    assert result.ended.result["ptx"] != softmax.recorded["ptx"]


@needs_llvm_options
def test_a_limit_does_not_outlive_its_compile(softmax: Subject) -> None:
    variants = softmax.variants("ptx")
    variants.limited(0)

    assert variants.without(frozenset()).result["ptx"] == softmax.recorded["ptx"]


@needs_llvm_options
def test_passes_are_numbered_without_a_gap_whatever_their_names(softmax: Subject) -> None:
    result = llvm.limited(softmax.from_mlir, llvm.ALL, seconds=60)

    assert [one.index for one in result.passes] == list(range(1, len(result.passes) + 1))
    assert "Speculatively execute instructions" in {one.name for one in result.passes}


@needs_llvm_options
def test_printed_passes_have_the_numbers_and_names_of_the_limit(softmax: Subject) -> None:
    limited = llvm.limited(softmax.from_mlir, llvm.ALL, seconds=60)
    _, printed = llvm.printed(lambda flush: softmax.from_mlir(), seconds=60)

    numbered = [(one.index, one.name, one.unit) for one in printed if one.index is not None]
    assert numbered == [(one.index, one.name, one.unit) for one in limited.passes]


@needs_llvm_options
def test_a_function_is_found_whether_it_is_exported_or_not() -> None:
    pointer = ctypes.cast(symbols.function("LLVMParseCommandLineOptions", None), ctypes.c_void_p).value

    library, offset = Path(libtriton.__file__), ctypes.CDLL(libtriton.__file__).PyInit_libtriton
    start = ctypes.cast(offset, ctypes.c_void_p).value or 0
    inside = symbols._address(library, "LLVMParseCommandLineOptions")
    assert pointer == start + inside - symbols._address(library, "PyInit_libtriton")


def test_a_missing_function_is_refused_with_a_remedy() -> None:
    with pytest.raises(Problem, match="this Triton has no symbol LLVMNoSuchThing") as refused:
        symbols.function("LLVMNoSuchThing", None)

    assert "not stripped" in str(refused.value.remedy)


def test_the_assembler_reproduces_tritons_cubin(softmax: Subject, ptx: str) -> None:
    assert ptxas.assemble(ptx, 80) == softmax.recorded["cubin"]


def test_every_assembler_supports_every_level_and_level_0_gives_the_longest_code(ptx: str) -> None:
    for one in ptxas.assemblers(80):
        sizes = [len(ptxas.assemble(ptx, 80, opt=level, assembler=one.name)) for level in ptxas.LEVELS]

        assert sizes[0] == max(sizes) > sizes[3]


def test_the_assembler_of_the_architecture_comes_first() -> None:
    assert [ptxas.assemblers(arch)[0].name for arch in (80, 100)] == ["ptxas", "ptxas-blackwell"]


def test_ptx_that_is_refused_is_reported_with_the_reason(ptx: str) -> None:
    with pytest.raises(
        Problem, match=r"ptxas refused the PTX: .*Not a name of any known instruction: 'rett'"
    ):
        ptxas.assemble(ptx.replace("ret;", "rett;"), 80)


def test_a_missing_assembler_is_refused_with_the_available_ones(ptx: str) -> None:
    with pytest.raises(Problem, match="there is no assembler nvcc") as refused:
        ptxas.assemble(ptx, 80, assembler="nvcc")

    assert refused.value.remedy == "this installation has ptxas, ptxas-blackwell"


def test_a_child_returns_its_result_and_does_not_change_its_parent() -> None:
    here: list[int] = []

    ended = in_child(lambda: {"pid": os.getpid(), "bytes": b"\x00\xff", "here": here.append(1)}, 10)

    assert (ended.failure, ended.result["bytes"], here) == ("", b"\x00\xff", [])
    assert ended.result["pid"] != os.getpid()


def test_a_child_that_aborts_is_named_by_its_signal_with_what_it_wrote() -> None:
    ended = in_child(lambda: (os.write(2, b"assertion failed"), os.abort()), 10)

    assert (ended.failure, ended.stderr) == ("it was ended by SIGABRT", "assertion failed")


def test_a_child_that_raises_returns_the_exception() -> None:
    def refuse() -> None:
        raise Problem("no such pass", "choose another")

    assert in_child(refuse, 10).failure == "no such pass"
    assert in_child(lambda: [][0], 10).failure == "IndexError: list index out of range"


def test_a_child_that_hangs_is_killed_with_what_it_started(tmp_path) -> None:  # type: ignore[no-untyped-def]
    ended = in_child(lambda: os.system(f"sleep 1; touch {tmp_path}/late"), 0.2)
    time.sleep(1.2)

    assert (ended.failure, ended.timed_out) == ("it did not end within 0.2 s", True)
    assert not (tmp_path / "late").exists()
