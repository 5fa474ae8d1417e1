"""A recorded pass as a lit test, which passes with the pass and fails without it."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from commands import tracing
from recorded.runs import recorded_passes

from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.lit import lit_test
from tracing.analyze.passes.pass_table import passes_of
from tracing.cli.narrow.lit import verified
from tracing.errors import Problem
from tracing.store import Run

BEFORE = """#loc = loc("k.py":1:0)
#blocked = #ttg.blocked<{order = [0]}>
#unused = #ttg.blocked<{order = [1]}>
module {
  tt.func @f(%x: i32 loc("x"(#loc)), %y: i32 loc("y"(#loc))) -> i32 {
    %c1 = arith.constant 1 : i32 loc(#loc1)
    %0 = arith.addi %x, %y : i32 loc(#loc1)
    %1 = arith.muli %0, %c1 : i32 loc(#loc1)
    tt.return %1 : i32 loc(#loc1)
  } loc(#loc)
}
"""

ONLY_LOCATIONS = ("enable-line-info", "sccp")  # and names made from them: what these change here


def checks(after: str, before: str = BEFORE, **how: str | int | None) -> list[str]:
    text = lit_test(before, after, "-pass", "title", **how).text  # type: ignore[arg-type]
    return [line.removeprefix("// ") for line in text.splitlines() if line.startswith("// CHECK")]


def test_the_run_line_is_that_of_triton_opt_and_the_input_has_no_locations() -> None:
    test = lit_test(BEFORE, BEFORE.replace("muli", "subi"), '-pass="a=1"', "title")
    run, title, *_rest = test.text.splitlines()

    assert run.startswith('// RUN: triton-opt %s -split-input-file -pass="a=1" | FileCheck %s')
    assert title == "// title"
    assert "loc(" not in test.text and "#unused" not in test.text


def test_changed_lines_are_checked_with_their_constants_and_with_variable_names() -> None:
    assert checks(BEFORE.replace("arith.muli %0, %c1", "arith.divsi %0, %c1")) == [
        "CHECK-LABEL: tt.func @f(",
        "CHECK: %[[C1:[^ ]+]] = arith.constant 1 : i32",
        "CHECK: arith.divsi %{{[^ ]+}}, %[[C1]] : i32",
    ]


def test_an_operation_of_which_none_is_left_must_not_come_back() -> None:
    test = lit_test(BEFORE, BEFORE.replace("muli", "divsi"), "-pass", "title")

    assert test.filecheck == ("--implicit-check-not=arith.muli",)
    assert "| FileCheck %s --implicit-check-not=arith.muli\n" in test.text


def test_a_line_that_went_away_leaves_its_neighbours_next_to_each_other() -> None:
    before = BEFORE.replace("    %1 =", "    %9 = arith.addi %y, %y : i32\n    %1 =")

    assert checks(BEFORE, before)[-2:] == [
        "CHECK-NEXT: %[[ADDI:[^ ]+]] = arith.addi %[[X]], %[[Y]] : i32",
        "CHECK-NEXT: arith.muli %[[ADDI]], %[[C1]] : i32",
    ]


def test_an_attribute_is_checked_by_the_value_of_its_alias() -> None:
    after = BEFORE.replace("%x, %y : i32", "%x, %y : tensor<4xi32, #blocked>")

    assert checks(after)[0] == "CHECK: #[[$BLOCKED:.+]] = #ttg.blocked<{order = [0]}>"
    assert checks(after)[-1] == "CHECK: arith.addi %[[X]], %[[Y]] : tensor<4xi32, #[[$BLOCKED]]>"


def test_filecheck_syntax_in_ir_is_escaped() -> None:
    after = BEFORE.replace("arith.constant 1", "arith.constant dense<[[1]]>")

    assert checks(after)[-1].endswith(r"arith.constant dense<{{\[\[}}1]]> : i32")


def test_of_a_rewritten_function_the_first_of_a_kind_is_read() -> None:
    after = BEFORE.replace(": i32 loc(#loc1)", ": i64 loc(#loc1)").replace(
        "%0 = arith.addi", "%0 = arith.muli"
    )

    assert [line.split("arith.")[-1].split()[0] for line in checks(after, limit=2)[1:-1]] == [
        "constant",
        "muli",
    ]


def test_lines_can_be_chosen() -> None:
    assert checks(BEFORE, only="muli")[-1].startswith("CHECK: arith.muli")


@pytest.mark.parametrize(
    ("only", "problem"), [("nosuchthing", "no line of the IR after the pass matches"), ("(", "no regular")]
)
def test_a_pattern_that_chooses_no_line_is_refused(only: str, problem: str) -> None:
    with pytest.raises(Problem, match=problem):
        checks(BEFORE.replace("%0 = arith.addi", "%0 = arith.muli"), only=only)


def test_a_pass_that_changed_only_locations_has_nothing_to_test() -> None:
    with pytest.raises(Problem, match="changed nothing that a test could check"):
        lit_test(BEFORE, BEFORE.replace("k.py", "other.py"), "-pass", "title")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The passes of two kernels, compiled for GPUs that need not be there."""
    return recorded_passes(tmp_path_factory.mktemp("runs"), ("softmax", "sm_90"), ("matmul", "gfx942"))


@pytest.mark.parametrize(
    "kernel", [pytest.param(0, id="softmax"), pytest.param(1, id="matmul", marks=pytest.mark.soak)]
)
def test_every_pass_that_changed_a_kernel_gets_a_test_that_it_passes_and_its_absence_fails(
    recorded: Run, kernel: int
) -> None:
    tested = 0
    for record in passes_of(recorded, compilations(recorded)[kernel]):
        with suppress(Problem) if record.name in ONLY_LOCATIONS or not record.changed else nullcontext():
            sides = recorded.text(record.before), recorded.text(record.after or "")
            test = verified(recorded, record, *sides)
            assert test.text.startswith("// RUN: triton-opt"), record.name
            tested += 1

    assert tested > 10


def test_the_command_writes_a_test_that_it_has_run(recorded: Run, tmp_path: Path) -> None:
    file = tmp_path / "coalesce.mlir"
    done = tracing(
        "lit", str(recorded.path), "--kernel", "softmax", "--pass", "tritongpu-coalesce", "-o", str(file),
        runs=tmp_path,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "the test passes, and fails without the pass" in done.stderr
    assert "-tritongpu-coalesce | FileCheck" in file.read_text()


@pytest.mark.parametrize(
    ("kernel", "which", "said"),
    [
        ("softmacs", "0", "softmax"),
        ("softmax", "tritongpu-coalese", "tritongpu-coalesce"),
        ("softmax", "enable-line-info", "changed nothing that a test could check"),
    ],
)
def test_a_pass_that_cannot_be_tested_is_refused(recorded: Run, kernel: str, which: str, said: str) -> None:
    done = tracing("lit", str(recorded.path), "--kernel", kernel, "--pass", which, runs=recorded.path.parent)

    assert done.returncode == 2 and said in done.stderr
    assert "Traceback" not in done.stderr
