"""The operations that replace those which a pass removes."""

from __future__ import annotations

from pathlib import Path

from handmade.records import compiled, new_run

from tracing.analyze.passes.pass_table import PassStep, passes_of, steps
from tracing.analyze.passes.replacements import ReplacedOperation, replacements
from tracing.model import PassRecord
from tracing.report.passes.passes import history_text
from tracing.store import Run

LOAD, STORE = 'loc("k.py":1:20)', 'loc("k.py":1:4)'  # tl.store(y, tl.load(x))
BEFORE = f"""\
%0 = tt.splat %x : f32 {LOAD}
%1 = tt.load %0 : f32 {LOAD}
tt.store %y, %1 : f32 {STORE}
"""
AFTER = f"""\
%0 = llvm.inline_asm %x : f32 {LOAD}
%1 = llvm.bitcast %0 : f32 {LOAD}
llvm.store %y, %1 : f32 {STORE}
"""


def test_an_operation_is_replaced_by_those_of_its_column_not_by_all_of_its_line(tmp_path: Path) -> None:
    run, lowering = lowered(tmp_path)

    made = replacements(run, lowering, {"tt.store", "tt.load"})

    assert made[0, "tt.store"] == ReplacedOperation({"llvm.store": 1}, ())
    assert made[0, "tt.load"] == ReplacedOperation({"llvm.inline_asm": 1, "llvm.bitcast": 1}, ("tt.splat",))


def test_operations_that_are_removed_at_one_location_are_named_together(tmp_path: Path) -> None:
    (run, lowering), wanted = lowered(tmp_path), {"tt.load"}

    text = "\n".join(map(str, history_text(lowering, wanted, replacements(run, lowering, wanted))))

    assert "disappears: became, together with tt.splat: 1 llvm.inline_asm, 1 llvm.bitcast" in text


def lowered(folder: Path) -> tuple[Run, list[PassStep[PassRecord]]]:
    writer = new_run(folder)
    kernel = compiled(writer, "add", BEFORE, ("llir", "lower", AFTER))
    writer.close()
    run = Run(writer.path)
    return run, steps(run, passes_of(run, kernel))
