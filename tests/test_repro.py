"""A launch as a script: it leaves the recorded bits in a process of its own, or it is not called a repro."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import DATA, recorded, tracing

from tracing.analyze.repro import write_repro
from tracing.errors import Problem
from tracing.store import Run


@pytest.fixture(scope="module")
def racing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    return Path(recorded(str(DATA / "racing.py"), runs, "--keep-inputs", "--no-passes"))


def test_a_script_that_leaves_the_recorded_bits_is_called_a_repro(racing: Path, tmp_path: Path) -> None:
    done = tracing("repro", str(racing), "--launch", "1", "--to", str(tmp_path / "it"), runs=racing.parent)

    assert done.returncode == 0, done.stdout
    assert "1 of 1 replays left the recorded bits" in done.stdout
    assert f"a repro: {tmp_path}/it/repro.py" in done.stdout.splitlines()


def test_a_kernel_of_inductor_is_replayed_without_inductors_run_time(racing: Path, tmp_path: Path) -> None:
    done = tracing("repro", str(racing), "--launch", "0", "--to", str(tmp_path), runs=racing.parent)

    assert done.returncode == 0, done.stdout
    assert "triton_heuristics" not in (tmp_path / "repro.py").read_text()


def test_a_script_that_leaves_other_bits_says_which(racing: Path, tmp_path: Path) -> None:
    written = write_repro(Run(racing), 1, tmp_path)
    facts = json.loads((tmp_path / "launch.json").read_text())
    (tmp_path / "launch.json").write_text(json.dumps(facts | {"contents": []}))

    done = subprocess.run([sys.executable, str(written.script)], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert f"out_ptr: recorded {facts['expected']['out_ptr']}, found " in done.stdout


@pytest.mark.parametrize(("launch", "message"), [(99, "no single launch 99"), (0, "were not kept")])
def test_a_launch_that_cannot_be_replayed_is_refused(launch: int, message: str, tmp_path: Path) -> None:
    path = recorded("silu", tmp_path, "--no-passes")

    with pytest.raises(Problem, match=message):
        write_repro(Run(Path(path)), launch, tmp_path / "repro")
