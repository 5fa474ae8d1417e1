"""Commands that print or write a damaged run end with status 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import tracing
from handmade.records import arg, launch
from handmade.runs import Operators, saved


@pytest.mark.parametrize("command", [["show"], ["show", "--json"], ["export", "--perfetto", "trace.json"]])
def test_a_damaged_run_has_no_complete_answer(
    command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    calls = Operators().call(0, "aten::rand", writes=[1])
    run = saved(tmp_path, [launch(0, arg("x", "in", "a", storage=1))], calls.records)
    name, *options = command
    assert tracing(name, str(run.path), *options, runs=tmp_path).returncode == 0

    for file in run.path.glob("operators-*"):
        file.unlink()

    assert tracing(name, str(run.path), *options, runs=tmp_path).returncode == 2
