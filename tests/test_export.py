"""Runs as tables: what SQL says of them, and what stands in the Parquet files."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted_runs import digits, saved
from records import arg, launch

from tracing.analyze.export import query, write_parquet
from tracing.errors import Problem
from tracing.store import Run

duckdb = pytest.importorskip("duckdb", reason="tables need duckdb")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        saved(folder / result, [launch(0, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", result))])
        for result in ("y", "z")
    ]


def test_launches_of_all_runs_stand_in_one_table(runs: list[Run]) -> None:
    columns, rows = query(runs, "select kernel, count(*) from launches group by kernel")

    assert (columns[0], rows) == ("kernel", [("triton_poi_fused_mul_0", 2)])


def test_arguments_have_their_digests(runs: list[Run]) -> None:
    _, rows = query(runs[:1], "select name, after, shape from arguments where modified")

    assert rows == [("out_ptr0", digits("y"), [4])]


def test_each_run_is_compared_with_the_first(runs: list[Run]) -> None:
    _, rows = query(runs, "select kind, kernel, argument, a from divergences")

    assert rows == [("output", "triton_poi_fused_mul_0", "out_ptr0", digits("y"))]


def test_a_query_that_is_wrong_is_refused_with_the_tables_there_are(runs: list[Run]) -> None:
    with pytest.raises(Problem, match="nothing") as problem:
        query(runs, "select nothing from launches")

    assert "arguments(run, rank, launch" in problem.value.remedy


def test_parquet_files_hold_the_same_rows(runs: list[Run], tmp_path: Path) -> None:
    files = write_parquet(runs, tmp_path / "new")

    count = duckdb.connect().execute(f"select count(*) from '{tmp_path}/new/arguments.parquet'").fetchone()
    assert [file.stem for file in files] == ["launches", "arguments", "passes", "divergences"]
    assert count == (4,)
