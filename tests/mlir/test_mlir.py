"""MLIR's generic text as a tree: parsed, printed, and changed so that MLIR still parses it."""

from __future__ import annotations

import re

import pytest
from recorded.runs import recorded_passes

from tracing.analyze.bisect.reduction import reduced, size
from tracing.analyze.passes.pass_table import passes_of
from tracing.compiler.generic_text import generic_texts
from tracing.compiler.one_pass import run_passes
from tracing.errors import Problem
from tracing.mlir import edits
from tracing.mlir.generic import parsed, partition, printed, split
from tracing.mlir.names import make_unique
from tracing.model import Compilation

LOOP = """
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
!t = tensor<128xf32, #blocked>
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @f(%x: !t, %n: i32 {tt.divisibility = 16 : i32}, %c: i1) -> !t {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %sum:2 = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %x) -> (!t, !t) : i32 {
      %y = arith.addf %a, %b : !t
      %z = scf.if %c -> !t {
        %m = math.exp %y : !t
        scf.yield %m : !t
      } else {
        scf.yield %y : !t
      }
      scf.yield %z, %b : !t, !t
    }
    %w = arith.mulf %sum#0, %sum#1 : !t
    tt.return %w : !t
  }
}
"""

CHAIN = """
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
!t = tensor<128xf32, #blocked>
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @f(%x: !t, %y: !t, %p: tensor<128x!tt.ptr<f32>, #blocked>) {
    %e = math.exp %x : !t
    %m = arith.mulf %e, %y : !t
    %s = arith.subf %m, %y : !t
    tt.store %p, %s : tensor<128x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
"""


def generic(text: str) -> str:
    (generic_text,) = generic_texts([text], seconds=30)
    return generic_text


def is_ir(text: str) -> bool:
    return run_passes(text, (), seconds=30).before is not None


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The input of every tenth pass of a kernel for two vendors, in generic form."""
    run = recorded_passes(tmp_path_factory.mktemp("runs"), ("matmul", "sm_90"), ("matmul", "gfx942"))
    blobs = {one.before for kernel in run.records(Compilation) for one in passes_of(run, kernel)[::10]}
    return generic_texts([run.text(blob) for blob in sorted(blobs)], seconds=60)


def test_parsed_and_printed_text_is_the_same_ir_to_mlir(texts: list[str]) -> None:
    again = generic_texts([printed(parsed(text)) for text in texts], seconds=60)

    assert len(texts) > 8
    assert again == texts


def test_with_unique_names_it_is_the_same_ir(texts: list[str]) -> None:
    modules = [parsed(text) for text in texts]
    for module in modules:
        make_unique(module)
        defined = [name for one in module.operation.walk() for name in one.results]
        assert len(defined) == len(set(defined))

    assert generic_texts([printed(module) for module in modules], seconds=60) == texts


def test_text_that_is_no_module_is_refused() -> None:
    with pytest.raises(Problem, match="no module in MLIR's generic form"):
        parsed("module {}")


def test_parts_are_split_outside_of_brackets_and_strings() -> None:
    assert split('a<b, c>, "d, e" : x, (f, g) -> h') == ["a<b, c>", '"d, e" : x', "(f, g) -> h"]
    assert partition('"a=b" = #x<{c = 1}>') == ('"a=b" ', " #x<{c = 1}>")


@pytest.mark.parametrize("at", range(6))
def test_any_operation_can_be_taken_out(at: int) -> None:
    module = parsed(generic(LOOP))
    make_unique(module)
    before = len(edits.inner_operations(module))

    edits.take_out(module, {at})

    assert len(edits.inner_operations(module)) < before
    assert is_ir(printed(module))


def test_a_loop_and_a_branch_are_replaced_by_their_bodies() -> None:
    module = parsed(generic(LOOP))
    make_unique(module)
    for name in ("scf.if", "scf.for"):
        (one,) = [one for one in edits.inner_operations(module) if one.name == name]
        assert edits.unwrap(module, one, 0)

    names = [one.name for one in edits.inner_operations(module)]
    assert names == ["arith.constant", "arith.constant", "arith.addf", "math.exp", "arith.mulf"]
    assert is_ir(printed(module))


def test_values_that_a_loop_carries_are_dropped() -> None:
    module = parsed(generic(LOOP))
    make_unique(module)
    (loop,) = [one for one in edits.inner_operations(module) if one.name == "scf.for"]

    edits.drop_carried(module, loop, 1)

    assert len(loop.results) == 1
    assert is_ir(printed(module))


def test_an_operation_is_replaced_by_its_operand_or_by_a_constant() -> None:
    module = parsed(generic(LOOP))
    make_unique(module)
    operations = {one.name: one for one in edits.inner_operations(module)}

    assert edits.bypass(module, operations["math.exp"], first=False)
    assert edits.make_constant(operations["arith.mulf"])

    assert is_ir(printed(module))
    assert "math.exp" not in printed(module)


def test_operations_after_a_result_that_must_be_used_are_left_out() -> None:
    def holds(text: str) -> bool:
        made = re.search(r'(%\w+) = "math.exp"', text)
        return made is not None and len(re.findall(rf"{made[1]}\b", text)) > 1 and is_ir(text)

    assert size(reduced(generic(CHAIN), holds))[0] == 2  # math.exp, tt.store


def test_ir_is_reduced_to_what_the_predicate_needs() -> None:
    asked: list[str] = []

    def holds(text: str) -> bool:
        asked.append(text)
        return '"math.exp"' in text and "tensor<" in text and is_ir(text)

    remaining = reduced(generic(LOOP), holds)

    assert size(remaining)[0] == 1
    assert holds(remaining)
    assert "arg_attrs" not in remaining and "128" not in remaining
    assert len(asked) < 150
