"""Run shell blocks of the docs on the two runs of `make demo`, each block in a copy of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from commands import ROOT
from documents.pages import Block


def record_demo(folder: Path) -> str:
    """Record the runs demo-sound and demo-faulty below `folder`/runs; returns what `make demo` prints."""
    command = [sys.executable, "-m", "scripts.demo", str(folder / "runs")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_block(block: Block, recorded: Path, folder: Path) -> None:
    """Run the commands of a block in `folder`, on a copy of the recorded runs, and check each exit status."""
    shutil.copytree(recorded / "runs", folder / "runs")
    for name in ("cases", "tests"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(Path(__file__).with_name("train.py"), folder)  # the reader's program
    scripts = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    for line in block.lines:
        done = subprocess.run(
            ["bash", "-c", line.command],
            cwd=folder,
            env={**os.environ, "PATH": scripts},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == line.status, f"{block}: {line.command}\n{done.stdout}{done.stderr}"
