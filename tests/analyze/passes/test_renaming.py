"""Renaming the values of an IR so that a diff shows what a pass changed, without its renumbering."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracing.analyze.passes.renaming import renamed

BEFORE = """\
%0 = tt.get_program_id x : i32
%1 = arith.constant 1 : i32
%2 = arith.constant 2 : i32
%3 = arith.subi %1, %2 : i32
%4:2 = scf.for %i = %1 to %2 iter_args(%a = %3, %b = %0) -> (i32, i32) {
%5 = arith.addi %a, %b : i32
}
tt.return %4#1
"""


def test_values_after_a_removed_operation_keep_their_names() -> None:
    after = "%0 = arith.constant 1 : i32\n%1 = arith.constant 2 : i32\n%2 = arith.subi %0, %1 : i32\n"

    assert renamed(BEFORE, after).splitlines() == BEFORE.splitlines()[1:4]


def test_swapped_operands_stay_visible() -> None:
    after = BEFORE.replace("subi %1, %2", "subi %2, %1")

    assert renamed(BEFORE, after) == after


def test_an_operand_that_a_new_operation_took_over_stays_visible() -> None:
    after = BEFORE.replace("%3 = arith.subi %1, %2", "%7 = math.new %1 : i32\n%3 = arith.subi %7, %2")

    assert "arith.subi %7, %2" in renamed(BEFORE, after)


def test_a_new_value_whose_name_was_taken_is_marked() -> None:
    after = "%0 = math.new : i32\n%1 = tt.get_program_id x : i32\ntt.return %0, %1\n"

    assert (
        renamed(BEFORE, after) == "%0' = math.new : i32\n%0 = tt.get_program_id x : i32\ntt.return %0', %0\n"
    )


def test_a_moved_operation_keeps_its_name() -> None:
    lines = BEFORE.splitlines(keepends=True)
    after = "".join([lines[1], "  " + lines[0], *lines[2:]]).replace("%0", "%9")

    assert "  %0 = tt.get_program_id" in renamed(BEFORE, after)


def test_a_percent_sign_in_a_string_is_no_value() -> None:
    asm = '%0 = llvm.inline_asm "mov %0, %1;" : i32\n'

    assert renamed("", asm) == asm


LAYOUTS = """\
#blocked = #ttg.blocked<{sizePerThread = [1]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4]}>
#slice = #ttg.slice<{dim = 0, parent = #blocked1}>
%0 = tt.make_range : tensor<4xi32, #slice>
"""


def test_an_alias_of_a_layout_that_stays_keeps_its_name() -> None:
    without = LAYOUTS.splitlines(keepends=True)[1:]
    after = "".join(without).replace("#blocked1", "#blocked").replace("#slice", "#slice3")

    assert renamed(LAYOUTS, after) == "".join(without)


def test_an_alias_with_a_different_layout_than_before_is_marked() -> None:
    after = LAYOUTS.replace("[4]", "[8]")

    assert renamed(LAYOUTS, after).splitlines()[1:] == [
        "#blocked1' = #ttg.blocked<{sizePerThread = [8]}>",
        "#slice' = #ttg.slice<{dim = 0, parent = #blocked1'}>",
        "%0 = tt.make_range : tensor<4xi32, #slice'>",
    ]


def test_a_hash_in_a_string_is_no_alias() -> None:
    text = '#blocked = #ttg.a\n"f"() {note = "#blocked"}\n'

    assert renamed("#blocked = #ttg.b\n", text) == '#blocked\' = #ttg.a\n"f"() {note = "#blocked"}\n'


@given(st.permutations(["%0", "%1", "%2", "%3", "%4", "%5", "%i", "%a", "%b"]))
def test_renumbering_is_never_a_difference(names: list[str]) -> None:
    new = dict(zip(["%0", "%1", "%2", "%3", "%4", "%5", "%i", "%a", "%b"], names, strict=True))
    after = "".join(new.get(part, part) for part in _parts(BEFORE))

    assert renamed(BEFORE, after) == BEFORE


def _parts(text: str) -> list[str]:
    return [part for word in text.split("%")[1:] for part in ("%" + word[0], word[1:])]


LINE = st.builds(
    "%{} = arith.{} %a, %b : i32".format, st.integers(0, 9), st.sampled_from(["addi", "subi"])
)  # a value each
PROGRAM = st.lists(LINE, min_size=1, unique_by=lambda line: line[:2])


@given(PROGRAM, PROGRAM)
def test_two_values_are_never_given_one_name(before: list[str], after: list[str]) -> None:
    lines = renamed("\n".join(before), "\n".join(after)).splitlines()

    assert len({line.split()[0] for line in lines}) == len(after)
    assert [line.split()[2] for line in lines] == [line.split()[2] for line in after]
