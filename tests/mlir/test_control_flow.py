"""Blocks of a function that are removed, joined, and given less: MLIR still reads it."""

from __future__ import annotations

import pytest

from tracing.analyze.bisect.reduction import reduced, size
from tracing.compiler.generic_text import generic_texts
from tracing.compiler.one_pass import run_passes
from tracing.mlir import control_flow
from tracing.mlir.generic import Module, parsed, printed
from tracing.mlir.names import make_unique

DIALECTS = {
    "cf": ("tt.func", "tt.return", "!tt.ptr<f32>", "cf.br", "cf.cond_br", "arith.addf"),
    "llvm": ("llvm.func", "llvm.return", "!llvm.ptr", "llvm.br", "llvm.cond_br", "llvm.fadd"),
}
TEXT = """
module {{
  {function} @f(%p: {pointer}, %c: i1, %x: f32, %n: i32) {{
    {br} ^bb1(%x, %n : f32, i32)
  ^bb1(%y: f32, %i: i32):
    {cond_br} %c, ^bb2, ^bb3(%y : f32)
  ^bb2:
    %z = {add} %y, %x : f32
    {br} ^bb3(%z : f32)
  ^bb3(%w: f32):
    %v = {add} %w, %y : f32
    {cond_br} %c, ^bb1(%v, %i : f32, i32), ^bb4
  ^bb4:
    {end}
  }}
}}
"""


def module(dialect: str) -> Module:
    function, end, pointer, br, cond_br, add = DIALECTS[dialect]
    text = TEXT.format(function=function, end=end, pointer=pointer, br=br, cond_br=cond_br, add=add)
    (generic,) = generic_texts([text], seconds=30)
    tree = parsed(generic)
    make_unique(tree)
    return tree


def is_ir(text: str) -> bool:
    return run_passes(text, (), seconds=30).before is not None


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("gone", [{0}, {1}, {2}, {3}, {0, 2}, {1, 3}, {0, 1, 2, 3}], ids=str)
def test_any_block_but_the_first_can_be_taken_out(dialect: str, gone: set[int]) -> None:
    edited = module(dialect)
    labels = [block.label for block in control_flow.blocks_after_entry(edited)]

    control_flow.take_out_blocks(edited, gone)

    left = {block.label for block in control_flow.blocks_after_entry(edited)}
    assert not left & {labels[at] for at in gone}
    assert is_ir(printed(edited))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_passed_to_a_block_becomes_an_argument_of_the_function(dialect: str) -> None:
    edited = module(dialect)
    (function,) = [one for one in edited.operation.walk() if one.name.endswith(".func")]
    before = len(function.regions[0][0].arguments)

    control_flow.drop_passed(edited, [(0, 0), (2, 0)])

    assert control_flow.passed(edited) == [(0, 0)]
    assert len(function.regions[0][0].arguments) == before + 2
    assert is_ir(printed(edited))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_blocks_in_a_row_become_one(dialect: str) -> None:
    edited = module(dialect)
    control_flow.take_out_blocks(edited, {1})

    assert control_flow.join(edited)

    assert len(control_flow.blocks_after_entry(edited)) == 2  # the loop, and what comes after it
    assert is_ir(printed(edited))
    assert not control_flow.join(edited)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_endless_loop_becomes_a_return(dialect: str) -> None:
    edited = module(dialect)
    control_flow.take_out_blocks(edited, {3})
    for block in control_flow.blocks_after_entry(edited):
        block.operations = [one for one in block.operations if not one.name.endswith(".return")]
    last = control_flow.branches(edited)[-1]

    control_flow.return_instead(edited, last)

    assert last not in control_flow.branches(edited)
    assert is_ir(printed(edited))


def test_of_a_branch_that_is_not_known_nothing_is_removed() -> None:
    edited = module("cf")
    for branch in control_flow.branches(edited):
        branch.name = "cf.switch"

    control_flow.take_out_blocks(edited, {3})

    assert len(control_flow.branches(edited)) == 4
    assert not control_flow.join(edited)


def test_control_flow_is_reduced_to_what_the_predicate_asks_for() -> None:
    def holds(text: str) -> bool:
        return '"llvm.fadd"' in text and is_ir(text)

    smallest = reduced(printed(module("llvm")), holds)

    assert size(smallest)[0] == 1
    assert "^bb" not in smallest
