"""The commands below a divergence: they run as they stand, also where the run lacks what they need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from commands import DATA, tracing
from planted_runs import add
from records import arg, compiled, launch
from test_ranks import INFO

from tracing import store
from tracing.cli import hints
from tracing.model import KernelLaunch

HASH = "0123456789ab"


def readable(index: int) -> KernelLaunch:
    """A launch whose kernel's module was recorded, and whose inputs were not."""
    one = launch(index, arg("in_ptr0", "in", "x"))
    return msgspec.structs.replace(
        one, kernel=msgspec.structs.replace(one.kernel, module="m", hash=HASH + "cdef")
    )


def of(folder: Path, one: KernelLaunch, **info: object) -> list[str]:
    writer = store.create(folder, msgspec.structs.replace(INFO, **info))
    add(writer, [one])
    return hints.of_launch(store.Run(writer.path), one)


def test_what_the_run_lacks_is_recorded_first(tmp_path: Path) -> None:
    repro, passes = of(tmp_path, readable(3), case="case+mask=window", seed=7)

    below = f"--runs {tmp_path}"
    recording = "tracing run /case.py:mask=window --keep-inputs --launches 3:4 --no-passes"
    assert repro == f"{recording} {below} --seed 7; tracing repro latest {below} --launch 3 --kernel {HASH}"
    assert passes.startswith(f"tracing run /case.py:mask=window {below} --seed 7; tracing passes latest")


def test_of_a_job_the_rank_is_named(tmp_path: Path) -> None:
    repro, _ = of(tmp_path, readable(3), world_size=2)

    assert repro.startswith("torchrun --nproc-per-node=2 -m tracing run /case.py --keep-inputs")
    assert repro.endswith(f"--launch 3 --kernel {HASH} --rank 0")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The commands below the race of data/racing.py, and its folder."""
    runs = tmp_path_factory.mktemp("runs")
    done = tracing("compare", str(DATA / "racing.py"), "--repeat", "2", "--perturb", runs=runs)
    assert done.returncode == 1, done.stderr
    return [line.split("next")[1].strip() for line in done.stdout.splitlines() if "    next" in line]


@pytest.mark.parametrize("command", ["repro", "passes", "lit"])
def test_they_run_as_they_are_printed(command: str, printed: list[str], tmp_path: Path) -> None:
    (text,) = (one for one in printed if f"tracing {command} " in one)
    typed = text.replace("tracing ", f"{sys.executable} -m tracing ")
    root = str(Path(__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(
        typed, shell=True, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False
    )

    assert done.returncode in (0, 1), done.stderr
    assert "tracing: " not in done.stderr


@pytest.mark.parametrize(("device", "judged"), [("virtual GPU", "-- COMMAND {ptx}"), ("H100", "--launch 3")])
def test_on_a_gpu_a_launch_with_its_inputs_is_its_own_judge(device: str, judged: str, tmp_path: Path) -> None:
    environment = msgspec.structs.replace(INFO.environment, device=device)
    writer = store.create(tmp_path, msgspec.structs.replace(INFO, environment=environment))
    made = compiled(writer, "add", "ir", ("ttgir", "tritongpu-coalesce", "other"))
    run = store.Run(writer.path)

    _, bisect, *of_a_pass = hints.of_kernel(run, "add", made, launch=3)

    assert bisect == f"tracing bisect {run.path} --kernel add {judged}"
    assert all(command.endswith("--pass tritongpu-coalesce") for command in of_a_pass) and of_a_pass
