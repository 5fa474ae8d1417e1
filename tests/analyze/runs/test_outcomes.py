"""How runs ended, and whether a new recording of a program failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.records import new_run

from tracing.analyze.runs.outcomes import failed_anew
from tracing.model import Outcome
from tracing.store import Run

ENDED = Outcome("ended", "exit status 0; a program is not compared with eager")
FAILED = Outcome("failed", "ValueError: invalid literal for int() with base 10: '' (stdin.py:2)")


def run(folder: Path, outcome: Outcome) -> Run:
    writer = new_run(folder)
    writer.append(outcome)
    writer.close()
    return Run(writer.path)


@pytest.mark.parametrize(
    ("before", "now", "error"),
    [(ENDED, FAILED, FAILED.detail), (ENDED, ENDED, ""), (FAILED, FAILED, "")],
)
def test_a_program_that_fails_only_when_it_is_recorded_anew_is_reported(
    before: Outcome, now: Outcome, error: str, tmp_path: Path
) -> None:
    assert failed_anew(run(tmp_path / "a", before), run(tmp_path / "b", now)) == error
