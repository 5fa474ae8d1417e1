"""`tracing diff`: a case with several backends, and what the launches of two runs left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import recorded
from documents.json_keys import require_documented
from handmade.records import new_run
from typer.testing import CliRunner, Result

from tracing.cli.app import app
from tracing.cli.options.backends import known_backends_of
from tracing.model import KeptAnswer
from tracing.store import Run

CASE = """
import torch
from tracing import Workload

def build(device: str, shift: float = 0.0, wrong: float = 0.0, refuse: bool = False) -> Workload:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + shift + (wrong if torch.compiler.is_compiling() else 0.0)

    def refused(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("sines are out")

    return Workload(refused if refuse else fn, (torch.rand(8, 16, device=device),))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def case(runs: Path) -> str:
    path = runs / "sines.py"
    path.write_text(CASE)
    return str(path)


def diff(*words: str, runs: Path) -> Result:
    return CliRunner().invoke(app, ["diff", *words, "--runs", str(runs)])


def test_backends_that_agree_within_the_tolerances_have_exit_status_0(case: str, runs: Path) -> None:
    done = diff(case, "--backends", "eager,aot_eager,inductor", runs=runs)

    assert done.exit_code == 0, done.output
    assert [line for line in done.stdout.splitlines() if "against" in line] == [
        "sines: aot_eager against eager: all results agree",
        "sines: inductor against eager: all results agree",
    ]


def test_inputs_are_not_counted_as_results(case: str, runs: Path) -> None:
    done = diff(case, "--backends", "eager,aot_eager", runs=runs)

    assert "1 of 1 results and 1 of 1 inputs afterwards are equal" in done.stdout


def test_the_mock_backends_have_short_names() -> None:
    assert known_backends_of("eager,mock,aot_mock") == ["eager", "mock_backend", "aot_mock_backend"]


def test_a_backend_that_differs_is_documented_in_json(case: str, runs: Path) -> None:
    done = diff(f"{case}:wrong=0.5", "--backends", "eager,aot_eager", "--json", runs=runs)

    assert done.exit_code == 1
    require_documented(done.stdout, "## `tracing diff`")
    (report,) = json.loads(done.stdout)["reports"]
    assert [one["name"] for one in report["results"] if not one["passed"]] == ["output"]


@pytest.mark.soak
def test_two_runs_are_compared_launch_by_launch_within_a_tolerance(case: str, runs: Path) -> None:
    a, b = (recorded(f"{case}:shift={shift}", runs, "--keep-outputs", "--no-passes") for shift in (0.0, 0.25))

    differs = diff(a, b, "--anyway", runs=runs)
    allowed = diff(a, b, "--anyway", "--atol", "0.3", runs=runs)

    assert (differs.exit_code, allowed.exit_code) == (1, 0)
    assert "1 of 1 results differ" in differs.stdout
    first, second = sorted(Run(Path(b)).records(KeptAnswer), key=lambda one: -one.status)  # kept in b
    assert (first.name, first.status, second.status) == ("diff", 1, 0)
    assert first.tables[0].rows[0][-1].startswith("differs: elements")
    assert [len(row) for row in first.heat[0].cells] == [16] * 8 and second.heat == ()
    assert list(Run(Path(a)).records(KeptAnswer)) == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["{case}", "--backends", "eager,nothing"], "there is no backend 'nothing'"),
        (["{case}", "--backends", "eager"], "one backend"),
        (["{case}", "--backends", ""], "--backends names no backend"),
        (["{run}", "{run}"], "kept no tensors\n  record it with them: `tracing run"),
        (["a", "b", "--backends", "eager,inductor"], "--backends needs a case"),
        (["a", "b", "c"], "3 names are given"),
    ],
)
def test_what_cannot_be_compared_is_one_clear_error(
    words: list[str], problem: str, case: str, runs: Path
) -> None:
    writer = new_run(runs)  # has no tensors
    writer.close()

    done = diff(*(one.format(case=case, run=writer.path) for one in words), runs=runs)

    assert done.exit_code == 2
    assert problem in done.output
    assert "Traceback" not in done.output


def test_a_backend_that_refuses_the_case_and_a_case_that_fails_are_no_answer(
    case: str, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the backend records below it
    monkeypatch.setenv("MOCK_ALIGNMENT", "9")

    refused = diff(case, "--backends", "eager,mock_backend", runs=runs)
    failed = diff(f"{case}:refuse=true", "--backends", "eager,aot_eager", runs=runs)

    assert (refused.exit_code, failed.exit_code) == (2, 2)
    assert "needed: a multiple of 9" in refused.output and "MOCK_STRICT=0" in refused.output
    assert "the case failed: ValueError: sines are out" in failed.output
