"""An argument that a kernel reads and writes is changed by each trial that does not restore it."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.records import arg, launch
from handmade.runs import saved
from msgspec.structs import replace

from tracing.analyze.runs.winners import changed_by_trials
from tracing.model import Winner
from tracing.report.findings import trials_text

TUNED = Winner(
    "triton", "add_to", "0" * 32, ("n=8",), {"BLOCK": 128}, candidates=({"BLOCK": 64}, {"BLOCK": 128}),
    restored=(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("winner", "names"),
    [
        (TUNED, ["total"]),
        (replace(TUNED, restored=("total",)), []),
        (replace(TUNED, restored=None), []),  # hooks may restore it
        (replace(TUNED, candidates=TUNED.candidates[:1]), []),  # nothing is tried
        (replace(TUNED, tuner="inductor"), []),  # it tries on copies
        (replace(TUNED, kernel="other"), []),
    ],
)
def test_arguments_that_trials_change(winner: Winner, names: list[str], tmp_path: Path) -> None:
    args = arg("x", "in", "x"), arg("y", "out", "old", "new"), arg("total", "in_out", "a", "b")
    run = saved(tmp_path, [launch(0, *args, name="add_to"), launch(1, *args, name="add_to")], [winner])

    assert [one.argument for one in changed_by_trials(run)] == names
    assert [line.plain for line in trials_text(run)] == [
        "autotuning: add_to reads and writes total, and each trial of its 2 configurations changes it: name "
        "it in reset_to_zero or restore_value"
        for _ in names
    ]
