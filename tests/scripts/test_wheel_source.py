"""The source that a user gives for the wheel is where debuggers look, and stays unchanged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import script_module

checkout, pins, wheel_source = map(script_module, ("build.checkout", "pins", "build.wheel_source"))


def test_a_given_source_is_what_debuggers_find_and_a_build_leaves_it_unchanged(tmp_path: Path) -> None:
    given, there = tmp_path / "mine", tmp_path / "toolchain/triton"
    given.mkdir()
    (given / "setup.py").write_text("mine")
    there.mkdir(parents=True)

    wheel_source.link(there, given)
    wheel_source.link(there, given)
    assert (there / "setup.py").read_text() == "mine"

    checkout.start(there)
    assert not there.is_symlink() and not (there / "setup.py").exists()
    assert [path.name for path in given.iterdir()] == ["setup.py"]


def test_another_tree_where_debuggers_look_is_kept(tmp_path: Path) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton/work.txt").write_text("mine")

    with pytest.raises(pins.Problem, match="holds another tree"):
        wheel_source.link(tmp_path / "triton", tmp_path)


def test_without_a_network_it_names_the_archive_and_the_command_that_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "pins.toml"
    own.write_text(pins.PINS.read_text().replace("https://github.com", "https://127.0.0.1:9"))
    words = ["--venv", sys.prefix, "--toolchain", str(tmp_path / "toolchain"), "--pins", str(own)]
    monkeypatch.setattr(sys, "argv", ["wheel_source", *words])

    assert wheel_source.main() == 2
    said = capsys.readouterr().err
    assert "/archive/refs/tags/v" in said and "make venv SOURCE=1 TRITON_SRC=FILE" in said
