"""The pass that is proposed for a test is one whose changes a test can check."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.records import compiled, new_run

from tracing import store
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.pass_table import passes_of
from tracing.cli.answers.pass_hints import of_passes

BEFORE = "%0 = tt.load %a : f32 loc(#loc)\n%1 = math.exp %0 : f32 loc(#loc)\n"
OTHER = "%0 = tt.load %a : f32 loc(#loc)\n%1 = math.exp2 %0 : f32 loc(#loc)\n"
RENAMED = "%7 = tt.load %a : f32 loc(#loc)\n%8 = math.exp2 %7 : f32 loc(#loc1)\n"


@pytest.mark.parametrize(
    ("passes", "named"),
    [
        ([("tritongpu-coalesce", OTHER), ("tritongpu-prefetch", RENAMED)], "tritongpu-coalesce"),
        ([("tritongpu-coalesce", OTHER), ("tritongpu-prefetch", BEFORE)], "tritongpu-prefetch"),
        ([("tritongpu-coalesce", RENAMED.replace("exp2", "exp"))], "tritongpu-coalesce"),
    ],
)
def test_a_pass_that_changed_only_names_is_the_last_resort(
    passes: list[tuple[str, str]], named: str, tmp_path: Path
) -> None:
    writer = new_run(tmp_path)
    compiled(writer, "k", BEFORE, *(("ttgir", name, after) for name, after in passes))
    writer.close()
    run = store.Run(writer.path)

    (kernel,) = compilations(run)
    commands = of_passes(run, "k", passes_of(run, kernel))

    assert [one.rpartition("--pass ")[2] for one in commands] == [named, named]
