"""Slow shell blocks of README and docs, and the transcript of README."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ROOT
from documents.blocks import record_demo, run_block
from documents.pages import Block, blocks

from scripts.tour import STEPS

LONG = [block for block in blocks() if block.needs in ("time", "gdb")]
BUILD = re.compile(r"\b[0-9a-f]{16}\b")  # a build's digest


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, record_demo(folder)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", LONG, ids=str)
def test_a_long_shell_block_runs_with_the_exit_status_that_it_promises(
    block: Block, demo: tuple[Path, str], tmp_path: Path
) -> None:
    if block.needs == "gdb" and not shutil.which("gdb"):
        pytest.skip("needs gdb")

    run_block(block, demo[0], tmp_path)


@pytest.mark.timeout(1800)
def test_the_tour_of_make_demo_ends_as_it_should(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.tour", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n── ") == len(STEPS)


def test_the_transcript_of_readme_is_what_make_demo_prints(demo: tuple[Path, str]) -> None:
    printed = iter(BUILD.sub("", demo[1]).splitlines())
    _, _, rest = (ROOT / "README.md").read_text().partition("<!-- transcript: make demo -->\n```\n")
    lines = [line for line in rest.partition("```")[0].splitlines() if line != "..."]

    assert lines
    for line in lines:
        assert BUILD.sub("", line) in printed, line  # advances: the order counts
