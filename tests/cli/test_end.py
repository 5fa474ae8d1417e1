"""How the process of a command ends: without a last garbage collection, but for programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tracing.model import Outcome
from tracing.store import Run

CYCLE = """
import sys
from pathlib import Path
from tracing import cli
from tracing.cli.answers.failures import LeaveTyper

class Cycle:
    def __init__(self):
        self.own = self
    def __del__(self):
        print("collected", flush=True)

def app():
    Cycle()
    raise {raised}

cli.app = app
cli.main()
"""


@pytest.mark.parametrize(
    ("raised", "printed"), [("SystemExit(0)", ""), ("LeaveTyper(lambda: None)", "collected\n")]
)
def test_cyclic_garbage_is_collected_at_the_end_of_a_program_only(raised: str, printed: str) -> None:
    command = [sys.executable, "-c", CYCLE.format(raised=raised)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == printed


@pytest.mark.parametrize(
    ("closed", "words"), [(">&-", "cases"), ("2>&-", "list --runs nowhere"), ("<&-", "opt - -cse")]
)
def test_a_closed_stream_is_no_error(closed: str, words: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m tracing {words} {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == (2 if "nowhere" in words else 0), done.stderr
    assert "NoneType" not in done.stderr


@pytest.mark.parametrize("words", ["cases", "list --runs nowhere"])
def test_a_command_whose_reader_has_ended_prints_nothing_more(words: str, tmp_path: Path) -> None:
    command = f"({sys.executable} -m tracing {words} 2>&1; echo $? >&3) 3>status | true"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True)

    assert (tmp_path / "status").read_text() == "2\n"
    assert done.stderr == ""


def test_a_recording_goes_on_when_nobody_reads_its_messages(tmp_path: Path) -> None:
    command = f"{sys.executable} -m tracing run silu --no-passes --runs . 2>&1 | true"
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)

    (run,) = tmp_path.glob("silu-*")
    assert [one.status for one in Run(run).records(Outcome)] == ["passed"]
