"""The quick part of tests/soak/test_mutated_runs.py: a thousand mutated runs, some hostile ones."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest
from damage.mutation_proof import command_faults, hostile_faults, reader_faults
from damage.run_readers import read_all
from handmade.small_runs import small_run

from tracing.errors import Problem


def test_readers_answer_mutated_runs_or_report_one_problem(tmp_path: Path) -> None:
    assert reader_faults(tmp_path, range(1000)) == []


def test_commands_answer_mutated_runs_or_print_one_error(tmp_path: Path) -> None:
    assert command_faults(tmp_path, range(30)) == []


def test_commands_answer_hostile_runs_or_print_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert hostile_faults(tmp_path, every=101) == []


def test_a_file_that_is_a_link_to_itself_is_damage(tmp_path: Path) -> None:
    source = small_run(tmp_path / "source")
    for number, name in enumerate(sorted(path.name for path in source.iterdir() if path.is_file())):
        run = tmp_path / f"run{number}"
        shutil.copytree(source, run)
        (run / name).unlink()
        (run / name).symlink_to(name)

        with contextlib.suppress(Problem):  # of a few files none is read
            read_all(run)
