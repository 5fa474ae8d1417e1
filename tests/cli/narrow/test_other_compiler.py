"""`resume` and `lit` on a run of a compiler that does otherwise than the installed one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import recorded, tracing
from faults.pass_faults import COMPILER

from tracing.store import Run

pytestmark = pytest.mark.soak
FAULTY = "tritongpu-coalesce"


def faulty(runs: Path, **fault: object) -> Run:
    variables = {"FAULT": json.dumps({"pass": FAULTY, **fault}), "PYTHONPATH": str(COMPILER)}
    done = tracing("run", "silu", "--compile-only", "--ir", "during", runs=runs, **variables)
    return Run(Path(done.stdout.strip().splitlines()[-1]))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return faulty(tmp_path_factory.mktemp("runs"), edit=[["arith\\.mulf", "arith.addf"]])


def test_resume_names_the_pass_that_gives_other_ir_and_what_to_do(run: Run) -> None:
    done = tracing("resume", run.name, "--pass", "triton-combine", "--to", "ptx", runs=run.path.parent)

    assert done.returncode == 1, done.stderr
    assert "ttir: identical" in done.stdout and "ptx: differs" in done.stdout
    assert "the installed compiler does not do what the recorded one did" in done.stdout
    assert f", {FAULTY}, gives other IR" in done.stdout
    changes = [line.strip() for line in done.stdout.splitlines() if line.strip()[:1] in "+-"]
    assert "arith.addf" in changes[0] and changes[0].startswith("-")
    assert any("arith.mulf" in line and line.startswith("+") for line in changes)
    commands = [line for line in done.stdout.splitlines() if line.startswith("    next ")]
    assert "tracing passes" in commands[0] and "tracing run" in commands[1]


def test_the_json_of_resume_has_the_pass_that_gives_other_ir(run: Run) -> None:
    done = tracing("resume", run.name, "--pass", FAULTY, "--to", "ptx", "--json", runs=run.path.parent)

    answer = json.loads(done.stdout)
    assert (answer["pass"], answer["status"]) == (answer["unlike_pass"], 1)


def test_resume_after_the_pass_that_gives_other_ir_is_equal(run: Run) -> None:
    done = tracing("resume", run.name, "--pass", FAULTY, "--after", "--to", "ptx", runs=run.path.parent)

    assert done.returncode == 0, done.stdout
    assert "installed compiler" not in done.stdout


def test_lit_of_such_a_pass_names_the_compiler_and_no_option(run: Run) -> None:
    done = tracing("lit", run.name, "--pass", FAULTY, runs=run.path.parent)

    assert done.returncode == 2
    assert "the installed compiler does not do what the recorded one did" in done.stderr
    assert "tracing run" in done.stderr and "--grep" not in done.stderr


def test_lit_of_a_pass_that_dies_in_the_recorded_compiler_only_says_so(tmp_path: Path) -> None:
    run = faulty(tmp_path, die="abort", **{"if": "arith.mulf"})

    done = tracing("lit", run.name, "--pass", FAULTY, runs=tmp_path)

    assert done.returncode == 2
    assert "did not end when it was recorded, and ends with the installed compiler" in done.stderr
    assert "tracing run" in done.stderr


def test_lit_that_no_line_distinguishes_still_offers_to_choose_lines(tmp_path: Path) -> None:
    sound = recorded("silu", tmp_path, "--compile-only")

    done = tracing("lit", sound, "--pass", FAULTY, "--grep", "tt.func", runs=tmp_path)

    assert done.returncode == 2
    assert "installed compiler" not in done.stderr
