"""A misspelt path names existing files with the same ending."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracing.program.near_files import near_files


@pytest.mark.parametrize(
    ("misspelt", "near"),
    [
        ("trian.py", ["train.py"]),
        ("exmaples/trian.py", ["examples/train.py"]),
        ("examples/trian.log", ["examples/train.log"]),
        ("trian.log", []),
        ("nosuch/train.py", []),
        ("train.py/x.py", []),
    ],
)
def test_files_with_similar_names_are_near(
    misspelt: str, near: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").mkdir()
    for name in ("train.py", "examples/train.py", "examples/train.log"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)

    assert near_files(Path(misspelt)) == near
    assert near_files(Path("/nosuch", os.sep, "x", misspelt)) == []
