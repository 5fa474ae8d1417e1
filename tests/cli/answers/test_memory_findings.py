"""Which accesses to memory `tracing run` lists."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.records import launch
from handmade.runs import saved

from tracing.analyze.memory.evidence import wrong_accesses
from tracing.cli.answers.findings import memory_findings_text
from tracing.model import Outcome, OutOfBounds


@pytest.mark.parametrize(
    ("access", "status", "listed"),
    [("load", "passed", False), ("load", "differs", True), ("store", "passed", True)],
)
def test_loads_inside_a_storage_are_listed_if_results_differ(
    access: str, status: str, listed: bool, tmp_path: Path
) -> None:
    outside = OutOfBounds(0, "x", access, 50, (1, 0, 0), 200, 264, 16, True, "rows.py:20")
    run = saved(tmp_path, [launch(0)], [outside, Outcome(status, "output")], ended=False)

    lines = [str(line) for line in memory_findings_text(run)]

    assert any(f"16 {access}s outside of x, within its storage" in line for line in lines) is listed


@pytest.mark.parametrize(
    ("access", "inside", "how"),
    [
        ("load", True, []),
        ("store", True, ["stores outside of an argument"]),
        ("load", False, ["leaves an argument's storage"]),
        ("store", False, ["leaves an argument's storage"]),
    ],
)
def test_a_store_within_the_storage_is_not_said_to_leave_it(
    access: str, inside: bool, how: list[str], tmp_path: Path
) -> None:
    outside = OutOfBounds(0, "x", access, 50, (1, 0, 0), 200, 264, 16, inside, "rows.py:20")
    run = saved(tmp_path, [launch(0)], [outside], ended=False)

    assert [*wrong_accesses(run).values()] == how
