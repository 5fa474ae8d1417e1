"""How runs ended, and whether a new recording of a program failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.jobs import INFO
from handmade.records import new_run

from tracing.analyze.runs.outcomes import died, ending, failed_anew
from tracing.model import Cut, Outcome
from tracing.store import Run, create

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


def test_a_program_that_continued_after_an_error_of_the_recorder_was_not_recorded_to_its_end(
    tmp_path: Path,
) -> None:
    writer = new_run(tmp_path)
    writer.append(Cut("OSError: No space left on device", 3))
    writer.append(ENDED)
    writer.close()

    assert ending(Run(writer.path), 0) == "was not recorded after launch 2: OSError: No space left on device"
    assert ending(Run(writer.path), 1) != ending(Run(writer.path), 0)


def test_a_rank_with_a_run_of_its_own_that_ended_did_not_die(tmp_path: Path) -> None:
    writer = create(tmp_path, INFO, 1)
    writer.append(ENDED)
    writer.close()

    assert not died(Run(writer.path))
