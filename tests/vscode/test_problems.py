"""Problem matchers of VSCode recognise the file and line in the output of commands."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT

from tracing.report.exports.sarif import sarif
from tracing.store import Run

problems = importlib.import_module("vscode.problems")
BROKEN = """import torch


def noisy(x):
    print("a side effect")
    return x + 1


@torch.compile(backend="eager")
def f(x):
    y = noisy(x)
    if y.sum() > 0:
        return y * 2
    return y


f(torch.ones(4))
"""
MLIR = """tt.func @f() {
  // expected-error @below {{another}}
  %0 = tt.make_range {end = 12 : i32, start = 0 : i32} : tensor<128xi32>
  tt.return
}
"""


def panel(matchers: list[dict[str, Any]], text: str) -> list[tuple[str, int, str, str]]:
    """Path, line, severity and message of each problem: each matcher's lines must follow one another."""
    lines, problems_ = text.splitlines(), []
    for start in range(len(lines)):
        for matcher in matchers:
            pattern = matcher["pattern"]
            matches = [
                re.search(one["regexp"], line) for one, line in zip(pattern, lines[start:], strict=False)
            ]
            if len(matches) == len(pattern) and all(matches):
                said = {
                    key: m[at]
                    for one, m in zip(pattern, matches, strict=True)
                    if m
                    for key, at in one.items()
                    if key != "regexp"
                }
                severity = said.get("severity", matcher["severity"])
                problems_.append((said["file"], int(said["line"]), severity, said["message"]))
    return problems_


def opt(path: Path, *flags: str) -> str:
    command = [sys.executable, "-m", "tracing", "opt", "--stand-in", str(path), *flags]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stderr


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "cases/a.py:12: error: 9 dimensions, 8 are allowed",
            ("cases/a.py", 12, "error", "9 dimensions, 8 are allowed"),
        ),
        ("  a b.py:3:7: warning: a cast", ("a b.py", 3, "warning", "a cast")),
        ('loc("k.py":4:5): remark: r', ("k.py", 4, "remark", "r")),
    ],
)
def test_a_finding_with_a_source_location_is_a_problem_there(
    line: str, problem: tuple[str, int, str, str]
) -> None:
    assert panel(problems.findings(""), line) == [problem]


@pytest.mark.parametrize("line", ["tracing: a.py is not a case", "12:30:01: error: none", "error: no file"])
def test_a_line_without_a_source_location_is_no_problem(line: str) -> None:
    assert panel(problems.findings(""), line) == []


def test_a_diagnostic_of_mlir_is_a_problem_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(MLIR)
    matched = panel(problems.findings(""), opt(path))

    assert (str(path), 3, "error") in [one[:3] for one in matched]


def test_a_diagnostic_that_was_not_expected_is_a_problem_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(MLIR)
    matched = panel(problems.findings(""), opt(path, "--verify-diagnostics"))

    assert [one[:3] for one in matched] == [(str(path), 2, "error"), (str(path), 3, "error")]
    assert 'expected error "another" was not produced' in matched[0][3]


@pytest.mark.soak
def test_a_graph_break_is_a_problem_at_its_line_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    own = {**os.environ, "TORCH_LOGS": "graph_breaks"}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=own, check=True)
    matched = panel(problems.graph_breaks(""), done.stderr)

    assert (str(path), 5, "warning", "Failed to trace builtin operator") in matched
    assert (str(path), 12, "warning", "Data-dependent branching") in matched
    assert {one[1] for one in matched} == {5, 12}


KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def broken(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, undefined_name)
"""
CASE = """from tracing import Workload
from kernels_of_it import broken, torch


def run(x):
    broken[(1,)](x, BLOCK=64)
    return x


def build(device):
    return Workload(run, (torch.rand(64, device=device),))
"""
PROGRAM = "from kernels_of_it import broken, torch\nbroken[(1,)](torch.rand(64), BLOCK=64)\n"


@pytest.mark.parametrize(
    "program", [pytest.param(CASE, id="case"), pytest.param(PROGRAM, id="program", marks=pytest.mark.soak)]
)
def test_a_kernel_that_the_frontend_refuses_is_a_problem_at_its_line(program: str, tmp_path: Path) -> None:
    kernels = tmp_path / "kernels_of_it.py"
    kernels.write_text(KERNEL)
    (tmp_path / "it.py").write_text(program)
    words = ["-m", "tracing", "run", "--runs", str(tmp_path / "runs"), str(tmp_path / "it.py")]
    own = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=ROOT, env=own, check=False
    )

    matched = panel(problems.findings(str(ROOT)), done.stdout + done.stderr)
    said = "kernel broken does not compile: NameError('undefined_name is not defined')"
    assert (str(kernels), 9, "error", said) in matched, done.stderr
    if program == CASE:  # Python prints the traceback of a program
        assert done.stderr.count("undefined_name is not defined") == 1
    (run,) = (tmp_path / "runs").iterdir()
    (result,) = sarif([Run(run)])["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == (kernels.as_uri(), 9)
