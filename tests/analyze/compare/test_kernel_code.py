"""What makes the code of two kernels differ: source, constants or IR, but no comments and no names."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from handmade.records import launch
from handmade.runs import saved

from tracing.analyze.compare.kernel_code import KernelCodes
from tracing.model import Kernel
from tracing.store import Run, RunWriter

IR = """#loc = loc("k.py":3:0)
module {
  tt.func public @k(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc))) {
    %cst = arith.constant 2.000000e+00 : f32 loc(#loc1)
    %0 = tt.load %x_ptr : !tt.ptr<f32> loc(#loc1)
    %1 = arith.mulf %0, %cst : f32 loc(#loc1)
    tt.store %x_ptr, %1 : !tt.ptr<f32> loc(#loc1)
    tt.return
  }
}
#loc1 = loc("k.py":4:0)
"""
SOURCE = "def KERNEL(x_ptr):\n    tl.store(x_ptr, tl.load(x_ptr) * 2)\n"


def kernel(
    run: Run, name: str, ir: str = IR, source: str = SOURCE, ptx: str = "ret;", **fields: object
) -> Kernel:
    writer = RunWriter(run.path)
    stages = {"ttir": writer.blob(ir), "ptx": writer.blob(ptx)}
    one = msgspec.structs.replace(
        launch(0).kernel, name="k", hash=name, stages=stages, module=writer.blob(source)
    )
    return msgspec.structs.replace(one, **fields)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return saved(tmp_path, [])


def difference(run: Run, a: Kernel, b: Kernel) -> str | None:
    change = KernelCodes(run, run).difference(a, b)
    return change and change.stage


def test_a_constant_that_changed_is_shown_in_the_source(run: Run) -> None:
    changed = kernel(run, "b", IR.replace("2.0", "2.5"), SOURCE.replace("* 2", "* 2.5"))

    change = KernelCodes(run, run).difference(kernel(run, "a"), changed)

    assert change is not None and change.stage == "source"
    assert any(line.startswith("+") and "2.5" in line for line in change.diff)


def test_ir_that_differs_although_the_source_is_equal_is_named_by_its_stage(run: Run) -> None:
    assert difference(run, kernel(run, "a"), kernel(run, "b", IR.replace("mulf", "addf"))) == "ttir"
    assert difference(run, kernel(run, "a"), kernel(run, "b", ptx="bar.sync 0;\nret;")) == "ptx"


def test_line_numbers_comments_and_value_names_are_no_difference(run: Run) -> None:
    moved = IR.replace('"k.py":4', '"k.py":40').replace("%x_ptr", "%first").replace("%cst", "%two")
    commented = "# a comment\n" + SOURCE
    debug = "\t.loc 1 40 2\n$L__tmp0:\n// a comment\nret;\n\t.section .debug_line"

    assert difference(run, kernel(run, "a"), kernel(run, "b", moved, commented, debug)) is None


def test_a_different_alignment_of_an_argument_is_no_difference_of_code(run: Run) -> None:
    unaligned = IR.replace(" {tt.divisibility = 16 : i32}", "")

    assert difference(run, kernel(run, "a"), kernel(run, "b", unaligned)) is None


def test_kernels_of_one_code_for_several_alignments_have_one_key(tmp_path: Path) -> None:
    a, b = saved(tmp_path / "a", []), saved(tmp_path / "b", [])
    other = IR.replace(" {tt.divisibility = 16 : i32}", "")
    aligned, plain = kernel(a, "aligned"), kernel(a, "plain", other)
    RunWriter(a.path).append(aligned)
    RunWriter(a.path).append(plain)
    alone = kernel(b, "plain", other)
    RunWriter(b.path).append(alone)

    codes = KernelCodes(Run(a.path), Run(b.path))

    assert codes.key(aligned, 0) == codes.key(plain, 0) == codes.key(alone, 1)


def test_kernels_of_different_configurations_are_compared_by_their_source_only(run: Run) -> None:
    configured = kernel(run, "b", IR.replace("mulf", "addf"), num_warps=8)

    assert difference(run, kernel(run, "a"), configured) is None
    assert difference(run, kernel(run, "a"), kernel(run, "b", source="x = 1", num_warps=8)) == "source"


def test_a_kernel_without_ir_is_compared_by_its_source(run: Run) -> None:
    a = kernel(run, "", stages={})

    assert difference(run, a, kernel(run, "", source=SOURCE + "\n", stages={})) is None
    assert difference(run, a, kernel(run, "", source=SOURCE.replace("2", "3"), stages={})) == "source"


def test_code_that_was_lost_is_noted(run: Run) -> None:
    codes = KernelCodes(run, run)

    a, b = kernel(run, "a"), kernel(run, "b", stages={"ttir": "0" * 32})

    assert codes.difference(a, b) is None
    assert "the code of k" in codes.notes[0]
    assert codes.is_lost(a, b) and not codes.is_code(a, b)
    assert not codes.is_lost(a, kernel(run, "c"))
