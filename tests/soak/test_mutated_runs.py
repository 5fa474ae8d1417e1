"""Mutated and hand-made hostile runs: each is answered, or is one error."""

from __future__ import annotations

from pathlib import Path

import pytest
from damage.mutation_proof import command_faults, hostile_faults, reader_faults

MUTATED = 100_000
ASKED = 2_000  # also by the commands


@pytest.mark.timeout(7200)
def test_readers_answer_mutated_runs_or_report_one_problem(tmp_path: Path) -> None:
    assert reader_faults(tmp_path, range(MUTATED)) == []


@pytest.mark.timeout(7200)
def test_commands_answer_mutated_runs_or_print_one_error(tmp_path: Path) -> None:
    assert command_faults(tmp_path, range(ASKED)) == []


@pytest.mark.timeout(7200)
def test_commands_answer_hostile_runs_or_print_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert hostile_faults(tmp_path, every=1) == []
