"""A launch as a script: it leaves the recorded bits in a process of its own, or it is not called a repro."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import DATA, recorded, tracing
from data import helped
from test_store import INFO

from tracing import store
from tracing.analyze.repro import write_repro
from tracing.errors import Problem
from tracing.record.launches import LaunchRecorder
from tracing.record.outputs import Keep
from tracing.store import Run
from tracing.virtual_gpu import virtual_gpu


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
    assert "triton_heuristics" not in (tmp_path / "kernel.py").read_text()


def test_a_kernel_brings_what_it_uses_of_its_module(tmp_path: Path) -> None:
    writer, workload = store.create(tmp_path, INFO), helped.build("cpu")
    with virtual_gpu(), LaunchRecorder(writer, keep=Keep(inputs=True)):
        workload.fn(*workload.args)
    script = write_repro(Run(writer.path), 0, tmp_path / "it").script

    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "1 of 1 replays left the recorded bits" in done.stdout


def test_a_script_that_leaves_other_bits_says_which(racing: Path, tmp_path: Path) -> None:
    written = write_repro(Run(racing), 1, tmp_path)
    facts = json.loads((tmp_path / "launch.json").read_text())
    (tmp_path / "launch.json").write_text(json.dumps(facts | {"contents": []}))

    done = subprocess.run([sys.executable, str(written.script)], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert f"out_ptr: recorded {facts['expected']['out_ptr']}, found " in done.stdout


def test_a_launch_that_cannot_be_replayed_is_refused(racing: Path, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no single launch 99"):
        write_repro(Run(racing), 99, tmp_path / "repro")


def test_a_launch_without_its_inputs_is_refused(racing: Path, tmp_path: Path) -> None:
    without = shutil.copytree(racing, tmp_path / "run", ignore=shutil.ignore_patterns("outputs-*"))

    with pytest.raises(Problem, match="the inputs of launch 1 were not kept: in_ptr, out_ptr"):
        write_repro(Run(without), 1, tmp_path / "repro")
