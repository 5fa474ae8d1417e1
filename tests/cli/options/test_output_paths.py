"""An output that cannot be written is refused with the folder to blame and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracing.cli.options.outputs import chosen_output, writable_file, writable_folder
from tracing.errors import Problem


def test_an_output_that_can_be_written_is_taken_as_it_is(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("")

    assert writable_file(there) == there and writable_file(tmp_path / "new") == tmp_path / "new"
    assert writable_folder(tmp_path / "new" / "below") == tmp_path / "new" / "below"
    assert writable_file(None) is None and writable_folder(None) is None
    assert writable_file(Path("/dev/null")) == Path("/dev/null")


def test_a_missing_folder_is_named_with_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(Problem) as raised:
        writable_file(tmp_path / "a b" / "file")

    assert raised.value.problem.endswith(f"there is no folder {tmp_path / 'a b'}")
    assert f"`mkdir -p '{tmp_path / 'a b'}'`" in raised.value.remedy


def test_a_folder_is_no_file_and_a_file_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")

    with pytest.raises(Problem, match="is a folder"):
        writable_file(tmp_path)
    with pytest.raises(Problem, match=f"{file} is no folder"):
        writable_file(file / "below")
    with pytest.raises(Problem, match=f"{file} is a file"):
        writable_folder(file / "below")


def test_a_folder_without_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere

    for refused in (writable_file, writable_folder):
        with pytest.raises(Problem, match=f"you may not write the folder {tmp_path}"):
            refused(tmp_path / "new")


def test_an_output_that_is_not_named_is_refused_with_the_option_that_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chosen_output(tmp_path / "a" / "b", "--output DIR") == tmp_path / "a" / "b"
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    with pytest.raises(Problem, match=f"you may not write the folder {tmp_path}") as raised:
        chosen_output(tmp_path / "a" / "b", "--output DIR")
    assert raised.value.remedy == "name another one with `--output DIR`"
