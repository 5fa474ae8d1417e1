"""Cases that fork: their run stays as readable as that of a case that does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import DATA, tracing

from tracing import store
from tracing.model import NotCovered, Outcome


@pytest.mark.parametrize(
    ("how", "status"),
    [
        pytest.param("return", 0, marks=pytest.mark.soak),
        pytest.param("raise", 1, marks=pytest.mark.soak),
        ("exit", 3),
        pytest.param("compute", 0, marks=pytest.mark.soak),
        pytest.param("process", None, marks=pytest.mark.soak),
    ],
)
def test_a_case_that_forks_has_one_outcome_and_a_readable_run(
    how: str, status: int | None, tmp_path: Path
) -> None:
    done = tracing("run", f"{DATA / 'forks.py'}:how={how}", "--no-passes", "--no-referee", runs=tmp_path)

    run = store.open_run("latest", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(run.path)
    assert [one.status for one in run.records(Outcome)] == ["passed"]
    assert len(list(run.launches())) == 2
    assert sum(len(list(run.operators(process))) for process in run.processes()) < 20
    assert any("processes that the program forks" in one.what for one in run.records(NotCovered))
    assert status is None or f"child ended with {status}\n" in done.stderr
