"""Tables without DuckDB."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from handmade.runs import saved

from tracing.analyze.tables.export import write_parquet
from tracing.errors import Problem


def test_no_folder_is_made_for_tables_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)

    with pytest.raises(Problem, match="duckdb is not installed"):
        write_parquet([saved(tmp_path / "run", [])], tmp_path / "tables")

    assert not (tmp_path / "tables").exists()
