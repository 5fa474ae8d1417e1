"""A program that is run as `python` runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracing.program.user_program import UserProgram


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["train.py"], "train"),
        (["package/__main__.py"], "package"),
        (["package"], "package"),
        (["-m", "package"], "package"),
        (["-m", "package.__main__"], "package"),
        (["-m", "package.train"], "package.train"),
    ],
)
def test_a_program_in_a_package_is_named_after_the_package(
    words: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert UserProgram(words).name == name
