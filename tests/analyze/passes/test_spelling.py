"""Texts of LLVM IR that differ only in spelling are equal, and others are not."""

from __future__ import annotations

import pytest

from tracing.analyze.passes.spelling import same

LLIR = """\
; ModuleID = 'LLVMDialectModule'
define void @f(i32 %n) #0 !dbg !5 {
  br label %loop, !dbg !7

loop:                                             ; preds = %loop, %0
  %i = phi i32 [ 0, %0 ], [ %next, %loop ], !dbg !7
  %next = add i32 %i, %n, !dbg !7
  %done = icmp eq i32 %next, 7
  br i1 %done, label %end, label %loop, !llvm.loop !9

end:                                              ; preds = %loop
  ret void
}

attributes #0 = { nounwind }

!5 = distinct !DISubprogram(name: "f", line: 1)
!7 = !DILocation(line: 3, scope: !5)
!9 = distinct !{!9, !10}
!10 = !{!"llvm.loop.unroll.disable"}
"""


def test_the_order_of_a_phi_is_spelling() -> None:
    other = LLIR.replace("[ 0, %0 ], [ %next, %loop ]", "[ %next, %loop ], [ 0, %0 ]").replace(
        "line: 3", "line: 4"
    )

    assert same(LLIR, other, "llir") == "locations and the order of phis"


def test_names_of_values_and_blocks_are_spelling_even_if_a_phi_uses_one_before_its_definition() -> None:
    other = LLIR.replace("%next", "%42").replace("loop", "1").replace("llvm.1", "llvm.loop")
    other = other.replace("[ 0, %0 ], [ %42, %1 ]", "[ %42, %1 ], [ 0, %0 ]")

    assert same(LLIR, other, "llir") == "names of values, the order of phis and locations"


def test_other_numbers_of_metadata_and_attributes_are_spelling() -> None:
    other = LLIR.replace("!10", "!20").replace("!9", "!19").replace("#0", "#3")

    assert same(LLIR, other, "llir") == "locations and the order of phis"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("icmp eq i32 %next, 7", "icmp eq i32 %next, 8"),
        ("add i32 %i, %n", "add i32 %n, %i"),
        ("[ 0, %0 ], [ %next, %loop ]", "[ %next, %0 ], [ 0, %loop ]"),
        ("unroll.disable", "unroll.enable"),
        ("nounwind", "norecurse"),
        ("label %end, label %loop", "label %loop, label %end"),
    ],
)
def test_a_difference_in_meaning_is_no_spelling(old: str, new: str) -> None:
    assert LLIR.count(old) == 1
    assert same(LLIR, LLIR.replace(old, new), "llir") == ""


def test_names_that_come_from_locations_are_spelling_in_mlir() -> None:
    a = "module {\n  %x = arith.constant 1 : i32 loc(#loc1)\n  %y = arith.addi %x, %x : i32 loc(#loc2)\n}\n"
    b = "module {\n  %0 = arith.constant 1 : i32\n  %1 = arith.addi %0, %0 : i32\n}\n"

    assert same(a, b, "ttgir") == "names of values and locations"
    assert same(a, b.replace("addi", "subi"), "ttgir") == ""


def test_lines_of_source_are_spelling_in_ptx() -> None:
    a = ".loc 1 3 4\nadd.f32 %f1, %f2, %f3;\n"

    assert same(a, a.replace("3 4", "5 6"), "ptx") == "locations"
    assert same(a, a.replace("add", "sub"), "ptx") == ""


def test_lines_of_source_are_spelling_in_amdgcn() -> None:
    a = """\t.text
\t.loc\t1 3 4 ; kern.py:3:4
.Ltmp0:
\ts_add_u32 s0, s1, s2
\t.section\t.debug_line,"",@progbits
\t.byte 3
\t.section\t.rodata
\t.byte 1
"""

    assert same(
        a, a.replace("3 4", "5 6").replace(".Ltmp0:\n", "").replace(".byte 3", ".byte 4"), "amdgcn"
    ) == ("locations")
    assert same(a, a.replace("s_add", "s_sub"), "amdgcn") == ""
    assert same(a, a.replace(".byte 1", ".byte 2"), "amdgcn") == ""


def test_equal_texts_differ_in_nothing() -> None:
    assert same(LLIR, LLIR, "llir") == ""
