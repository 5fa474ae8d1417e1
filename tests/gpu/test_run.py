"""On a GPU: kernels run on it, a second run compares equal, and a seeded difference is reported."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from commands import DATA, recorded, tracing

from tracing import store
from tracing.model import OperatorCall

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_the_second_run_of_a_case_on_a_gpu_compares_equal(tmp_path: Path) -> None:
    a, b = (recorded(str(DATA / "untuned.py"), tmp_path) for _ in range(2))

    shown = tracing("show", a, runs=tmp_path).stdout
    compared = tracing("compare", a, b, runs=tmp_path)

    assert f"device    {torch.cuda.get_device_name()}" in shown
    assert "[OUT] out_ptr0=t: f32[32, 1, 896]" in shown
    assert (compared.returncode, compared.stdout) == (0, "equal: 1 launch, every digest, 1 result\n")


def test_a_seeded_difference_is_caught_at_the_launch_that_first_reads_it(tmp_path: Path) -> None:
    a, b = (recorded(str(DATA / "seeded.py"), tmp_path, "--seed", seed) for seed in ("0", "1"))

    done = tracing("compare", a, b, runs=tmp_path)

    assert done.returncode == 1
    assert "✗ start: input 2 differs: float32[32, 896] " in done.stdout
    assert "first consequence: launch #" in done.stdout


UNTOUCHED = """
import os
import sys

import torch

print(torch.cuda.is_initialized())
child = os.fork()
if child == 0:
    print(torch.ones(2, device="cuda").sum().item(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(torch.compile(lambda x: x + 1)(torch.ones(4, device="cuda")).sum().item())
"""
HIDDEN = """
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch

print(torch.cuda.is_available(), torch.cuda.device_count())
"""


@pytest.mark.parametrize("program", [UNTOUCHED, HIDDEN])
def test_the_gpu_is_not_opened_before_the_program_does(program: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(program)
    alone = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)

    done = tracing("run", str(path), runs=tmp_path / "runs")

    assert (done.returncode, done.stdout) == (0, alone.stdout), done.stderr


DIES = """
import os

import torch

f = torch.compile(lambda x, w: ((x.sin() @ w).cos() @ w).exp())
x, w = (torch.randn(64, 64, device="cuda") for _ in range(2))
for _ in range(3):
    f(x, w)
os.abort()
"""


def test_launches_of_a_program_that_a_signal_ends_are_in_its_run(tmp_path: Path) -> None:
    (path := tmp_path / "dies.py").write_text(DIES)

    done = tracing("run", str(path), runs=tmp_path / "runs")

    assert done.returncode == -signal.SIGABRT, done.stderr
    (folder,) = store.recorded(tmp_path / "runs")
    run = store.Run(folder)
    assert [launch.index for launch in run.launches()] == list(range(9))
    assert sum(1 for one in run.records(OperatorCall)) >= 6  # aten::mm, twice a call


DEFAULT_DEVICE = """
import torch

torch.set_default_device("cuda")
step = torch.compile(lambda x, w: (x @ w).sin() + 1)
print(step(torch.ones(64, 64), torch.ones(64, 64)).device)
with torch.device("cuda"):
    print(step(torch.ones(32, 32), torch.ones(32, 32)).device)
"""


def test_a_program_with_a_default_device_is_recorded_and_judged(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(DEFAULT_DEVICE)

    run = tracing(
        "run", "--keep-inputs", "--operators", "digests", str(tmp_path / "program.py"), runs=tmp_path
    )
    judged = tracing("judge", "latest", runs=tmp_path)

    assert (run.returncode, run.stdout) == (0, "cuda:0\n" * 2)
    assert "recording ended" not in run.stderr
    assert (judged.returncode, judged.stdout.splitlines()[0]) == (0, "every launch that was judged is right")
