"""The quick part of tests/soak/test_mutated_runs.py: a thousand mutated runs, some hostile ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from damage.mutation_proof import command_faults, hostile_faults, reader_faults


def test_readers_answer_mutated_runs_or_report_one_problem(tmp_path: Path) -> None:
    assert reader_faults(tmp_path, range(1000)) == []


def test_commands_answer_mutated_runs_or_print_one_error(tmp_path: Path) -> None:
    assert command_faults(tmp_path, range(30)) == []


def test_commands_answer_hostile_runs_or_print_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert hostile_faults(tmp_path, every=101) == []
