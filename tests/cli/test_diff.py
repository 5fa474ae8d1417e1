"""`tracing diff`: a case with several backends, and what the launches of two runs left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import recorded, tracing
from documented_keys import require_documented

CASE = """
import torch
from tracing import Workload

def build(device: str, shift: float = 0.0) -> Workload:
    def fn(x: torch.Tensor) -> torch.Tensor:
        wrong = 0.5 if torch.compiler.is_compiling() else 0.0
        return torch.sin(x) + shift + wrong * {wrong}

    return Workload(fn, (torch.rand(8, 16, device=device),))
"""


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "sines.py"
    path.write_text(CASE.replace("{wrong}", "0"))
    return path


def test_backends_that_agree_within_the_tolerances_have_exit_status_0(case: Path, tmp_path: Path) -> None:
    done = tracing("diff", str(case), "--backends", "eager,aot_eager,inductor", runs=tmp_path)

    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if "against" in line] == [
        "sines: aot_eager against eager: all results agree",
        "sines: inductor against eager: all results agree",
    ]


def test_a_backend_that_differs_is_documented_in_json(case: Path, tmp_path: Path) -> None:
    case.write_text(CASE.replace("{wrong}", "1"))

    done = tracing("diff", str(case), "--backends", "eager,aot_eager", "--json", runs=tmp_path)

    assert done.returncode == 1
    require_documented(done.stdout, "## `tracing diff`")
    (report,) = json.loads(done.stdout)["reports"]
    assert [one["name"] for one in report["results"] if not one["passed"]] == ["output"]


def test_two_runs_are_compared_launch_by_launch_within_a_tolerance(case: Path, tmp_path: Path) -> None:
    a, b = (
        recorded(f"{case}:shift={shift}", tmp_path, "--keep-outputs", "--no-passes") for shift in (0.0, 0.25)
    )

    differs = tracing("diff", a, b, "--anyway", runs=tmp_path)
    allowed = tracing("diff", a, b, "--anyway", "--atol", "0.3", runs=tmp_path)

    assert (differs.returncode, allowed.returncode) == (1, 0)
    assert "1 of 1 results differ" in differs.stdout


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["{case}", "--backends", "eager,nothing"], "there is no backend 'nothing'"),
        (["{case}", "--backends", "eager"], "one backend"),
        (["{run}", "{run}"], "kept no tensors of rank 0"),
        (["a", "b", "--backends", "eager,inductor"], "--backends needs a case"),
        (["a", "b", "c"], "3 names are given"),
    ],
)
def test_what_cannot_be_compared_is_one_clear_error(
    words: list[str], problem: str, case: Path, tmp_path: Path
) -> None:
    run = recorded(str(case), tmp_path, "--no-passes") if "{run}" in words else ""

    done = tracing("diff", *(one.format(case=case, run=run) for one in words), runs=tmp_path)

    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
