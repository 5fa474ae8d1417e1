"""The operations in MLIR's text, and the location of each."""

from __future__ import annotations

from tracing.analyze.passes.operations import counts, operations, split_location, without_locations

MODULE = """\
#blocked = #ttg.blocked<{order = [0]}>
#loc = loc("/k.py":1:0)
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc))) attributes {a = 0} {
    %0:2 = scf.for %i = %a to %b step %c iter_args(%p = %q) -> (f32, f32) {
      %1 = "tt.reduce"(%0) <{axis = 0 : i32}> ({
      ^bb0(%l: f32 loc("l"(#loc)), %r: f32 loc(unknown)):
        tt.reduce.return %l : f32 loc(#loc4)
      }) : (tensor<4xf32, #blocked>) -> f32 loc(#loc5)
      %2 = scf.if %d -> (f32) {
        scf.yield %1 : f32 loc(#loc6)
      } else {
        scf.yield %1 : f32 loc(#loc7)
      } loc(#loc8)
      scf.yield %2, %2 : f32, f32 loc(#loc9)
    } {tt.num_stages = 3 : i32} loc(#loc10)
    %3 = llvm.inline_asm "{ mov loc(a) %0; }", "=r" : () -> i32 loc(#loc11)
    ttg.warp_specialize(%x)
    default {
      ttg.warp_yield loc(#loc12)
    }
    partition0(%y: i32 loc(#loc)) num_warps(4) {
      ttg.warp_return loc(#loc13)
    } : (i32) -> () loc(#loc14)
    tt.return loc(#loc15)
  } loc(#loc16)
} loc(#loc)
"""


def test_every_line_that_begins_an_operation_counts_once() -> None:
    assert counts(MODULE) == {
        "tt.func": 1, "scf.for": 1, "tt.reduce": 1, "tt.reduce.return": 1, "scf.if": 1, "scf.yield": 3,
        "llvm.inline_asm": 1, "ttg.warp_specialize": 1, "ttg.warp_yield": 1, "ttg.warp_return": 1,
        "tt.return": 1,
    }  # fmt: skip


def test_a_module_does_not_count_in_generic_form_either() -> None:
    generic = """"builtin.module"() ({
  "tt.func"() <{sym_name = "k"}> ({
    %0 = "builtin.unrealized_conversion_cast"() : () -> i32
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
    assert counts(generic) == {"tt.func": 1, "builtin.unrealized_conversion_cast": 1, "tt.return": 1}


def test_an_operation_with_regions_has_the_location_after_its_last_region() -> None:
    locations = {operation.name: operation.location for operation in operations(MODULE)}

    assert locations["tt.func"] == "#loc16"
    assert locations["scf.for"] == "#loc10"
    assert locations["tt.reduce"] == "#loc5"
    assert locations["scf.if"] == "#loc8"
    assert locations["ttg.warp_specialize"] == "#loc14"


def test_braces_and_locations_inside_of_strings_are_text() -> None:
    asm = next(operation for operation in operations(MODULE) if operation.name == "llvm.inline_asm")

    assert asm.text == '%3 = llvm.inline_asm "{ mov loc(a) %0; }", "=r" : () -> i32'
    assert asm.location == "#loc11"


def test_a_nested_location_ends_with_its_own_parenthesis() -> None:
    line = 'tt.return loc(callsite("z)"("k.py":1:2) at #loc3))'

    assert split_location(line) == ("tt.return", 'callsite("z)"("k.py":1:2) at #loc3)')


def test_modules_that_differ_only_in_locations_are_equal_without_them() -> None:
    moved = MODULE.replace("#loc1", "#loc2").replace('"/k.py":1:0', '"/k.py":2:0')

    assert moved != MODULE
    assert without_locations(moved) == without_locations(MODULE)


def test_truncated_ir_is_read_up_to_the_truncation() -> None:
    cut = MODULE[: MODULE.index("scf.yield %2")]

    assert [operation.name for operation in operations(cut)][-1] == "scf.yield"
