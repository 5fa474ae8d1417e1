"""The source that a user gives for the wheel is where debuggers look, and stays unchanged."""

from __future__ import annotations

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
