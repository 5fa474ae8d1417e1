"""Bisects some of the faults of tests/soak/test_bisect_faults.py, and the same passes once they are fixed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults.pass_faults import (
    COMPILER,
    FAULTS,
    Fault,
    bisected,
    build_library,
    environment,
    needs_exported_llvm,
    outcome,
    recorded,
)

from tracing.compiler.opt import printing
from tracing.errors import Problem

try:
    printing.require()
except Problem:
    pytest.skip("this Triton exports no function with which IR is edited in place", allow_module_level=True)
MLIR = [
    pytest.param(name, marks=pytest.mark.soak)
    for name in ("ttir-inline-sm_80", "llir-convert-triton-gpu-to-llvm-sm_80")
]
NATIVE = (
    pytest.param("LLVM-gvn-gfx942", marks=needs_exported_llvm),
    pytest.param("ptxas-ptxas-sm_80", marks=pytest.mark.soak),
)


def planted(name: str) -> Fault:
    return next(one for one in FAULTS if str(one) == name)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("library"))


@pytest.mark.parametrize("name", [*MLIR, *NATIVE])
def test_the_pass_that_is_faulty_is_named(name: str, tmp_path: Path, library: Path) -> None:
    fault = planted(name)
    variables = environment(fault, library)
    run = recorded(tmp_path, variables, fault.kernel, fault.target)

    done = bisected(run, fault, variables)

    assert outcome(fault, done)[0] == "right", done.stdout + done.stderr


@pytest.mark.soak
def test_once_the_pass_is_fixed_no_pass_of_the_run_is_judged(tmp_path: Path, library: Path) -> None:
    fault = planted("ttgir-tritongpu-coalesce-gfx942")
    variables = environment(fault, library)
    run = recorded(tmp_path, variables, fault.kernel, fault.target)
    faulty, mended = bisected(run, fault, variables), bisected(run, fault, dict(os.environ))

    assert outcome(fault, faulty)[0] == "right", faulty.stdout + faulty.stderr
    assert "first bad with tritongpu-coalesce (#" in faulty.stdout
    assert "executed on generated inputs, the IR first computes other values" in faulty.stdout
    assert mended.returncode == 2
    assert "the full pipeline of this compiler is good, and it is not the recorded one" in mended.stderr


@pytest.mark.soak
def test_a_mandatory_pass_is_blamed_for_breaking_the_output_of_an_optional_one(tmp_path: Path) -> None:
    fault = '{"pass": "convert-triton-gpu-to-llvm", "edit": [["(wait.group) \\\\d", "\\\\1 9"]]}'
    variables = {**os.environ, "FAULT": fault, "PYTHONPATH": str(COMPILER)}
    run = recorded(tmp_path, variables, "matmul", "sm_80")
    judge = [sys.executable, str(COMPILER.parent / "judge.py"), "waits", "{ptx}"]
    command = [sys.executable, "-m", "tracing", "bisect", str(run), "--", *judge]

    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    assert done.returncode == 2, done.stdout + done.stderr
    assert "MLIR passes: leaving out points to tritongpu-pipeline (#" in done.stdout
    suspects = done.stdout.partition("reading IR distinguishes:\n")[2].splitlines()
    assert suspects[0].startswith("    convert-triton-gpu-to-llvm (#")
