"""The commands that `make run` prints can be typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ROOT, script_module

next_steps, build_checks = map(script_module, ("next_steps", "build_checks"))


def test_each_printed_command_is_a_file_that_knows_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    lines = next_steps.next_steps(Path(sys.prefix))
    words = [line.partition("#")[0].split() for line in lines]
    commands = [one for one in words if one[:1] == [f"{sys.prefix}/bin/tracing"]]

    assert len(commands) == len(next_steps.STEPS)
    for program, first, *_ in commands:
        asked = [first] if first.startswith("-") else [first, "--help"]
        done = subprocess.run([program, *asked], capture_output=True)
        assert done.returncode == 0
    assert f"source {sys.prefix}/bin/activate" in lines[-1]


def test_in_an_activated_shell_no_path_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin:{os.environ['PATH']}")

    assert not any("/" in line.partition("#")[0] for line in next_steps.next_steps(Path(sys.prefix)))


def test_the_target_run_ends_with_them() -> None:
    recipe = re.search(r"^run: .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert recipe is not None and recipe[1].rstrip().endswith("-m scripts.next_steps $(VENV)")


def test_the_newest_clang_of_the_distribution_is_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "apt-cache"
    program.write_text("#!/bin/sh\necho clang-14 clang-19 clang-16 clang-19-doc clang-tools\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert build_checks.newest_clang() == "clang-19"

    program.write_text("#!/bin/sh\necho clang-14\n")
    assert build_checks.newest_clang() == "clang"
