"""`tracing bisect --crash` on compiles that die: in a pass, in LLVM and in ptxas."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents.json_keys import require_documented
from faults.pass_faults import BINARIES, COMPILER, build_library, needs_exported_llvm, recorded
from recorded.kernels import needs_llvm_options

from tracing.compiler.child import ChildResult
from tracing.compiler.early_end import early_end_of
from tracing.model import KeptAnswer
from tracing.store import Run


def dying(which: str, how: str, on: str) -> dict[str, str]:
    fault = json.dumps({"pass": which, "die": how, "if": on})
    return {**os.environ, "FAULT": fault, "PYTHONPATH": str(COMPILER)}


def tracing(variables: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tracing", *words]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def test_the_pass_that_dies_and_the_earlier_one_that_provokes_it_are_named(tmp_path: Path) -> None:
    variables = dying("tritongpu-reduce-data-duplication", "abort", "ttg.async_wait")
    run = recorded(tmp_path, variables, "matmul", "sm_80")

    shown = tracing(variables, "show", str(run))  # its IR between passes is not derived yet
    done = tracing(variables, "bisect", str(run), "--crash")

    assert shown.returncode == 0, shown.stderr
    assert 'Assertion `layout && "no layout"\' failed' in shown.stdout
    assert done.returncode == 1, done.stderr
    assert re.search(r"matmul dies in tritongpu-reduce-data-duplication \(pass \d+, ttgir\)\n", done.stdout)
    assert 'message        Assertion `layout && "no layout"\' failed' in done.stdout
    assert "MLIR passes: provoked by tritongpu-pipeline (#" in done.stdout
    assert re.search(r"nor without    .*tritongpu-assign-latencies \(#\d+\)", done.stdout)


@pytest.mark.soak
def test_with_json_a_crash_and_what_provokes_it_have_the_documented_keys(tmp_path: Path) -> None:
    variables = dying("tritongpu-reduce-data-duplication", "abort", "ttg.async_wait")
    run = recorded(tmp_path, variables, "matmul", "sm_80")

    done = tracing(variables, "bisect", str(run), "--crash", "--json")

    answer = json.loads(done.stdout)
    require_documented(done.stdout, "### With `--crash`")
    assert done.returncode == answer["status"] == 1
    assert answer["dies"]["name"] == "tritongpu-reduce-data-duplication"
    assert answer["provoked"][0]["step"]["name"] == "tritongpu-pipeline"
    (kept,) = Run(run).records(KeptAnswer)  # also what --json silences
    assert (kept.name, kept.status, kept.kernel) == ("bisect", 1, "matmul")
    assert kept.lines[0].startswith("matmul dies in tritongpu-reduce-data-duplication")


@pytest.mark.soak
def test_a_crash_is_reduced_to_a_test_that_fails_until_the_pass_is_fixed(tmp_path: Path) -> None:
    variables = dying("tritongpu-coalesce", "error", "tt.reduce")
    run = recorded(tmp_path, variables, "softmax", "sm_80")
    asked = (str(run), "--kernel", "softmax", "--pass", "tritongpu-coalesce")
    small, test = tmp_path / "small.mlir", tmp_path / "test.mlir"

    reduced = tracing(variables, "reduce", *asked, "-o", str(small))
    anew = tracing(variables, "reduce", *asked, "-o", str(small))
    written = tracing(variables, "lit", *asked, "--ir", str(small), "-o", str(test))
    faulty, mended = (
        tracing(env, "opt", str(test), "-tritongpu-coalesce") for env in (variables, {**os.environ})
    )

    passes = json.loads(tracing(variables, "passes", *asked, "--json").stdout)
    counted = sum(passes["operations"]["before"].values())
    assert re.match(rf"{counted} operations became [1-4], by \d+ tries", reduced.stderr), reduced.stderr
    assert len(small.read_text().splitlines()) < 12
    assert int(anew.stderr.split("by ")[1].split()[0]) < int(reduced.stderr.split("by ")[1].split()[0])
    assert written.stderr.endswith("test.mlir: the test fails, until the pass is mended\n")
    assert test.read_text().startswith(
        "// RUN: triton-opt %s -split-input-file -tritongpu-coalesce | FileCheck %s"
    )
    assert "operation has no layout" in test.read_text()
    assert (faulty.returncode, mended.returncode) == (1, 0)


@pytest.mark.soak
@needs_exported_llvm
def test_a_kernel_whose_llvm_died_is_named_by_show_with_the_command_that_finds_the_pass(
    tmp_path: Path,
) -> None:
    library = build_library(tmp_path)
    fault = {"LD_PRELOAD": str(library), "FAULT_LLVM": "GVNPass:llvm.maxnum.f32:abort"}
    run = recorded(tmp_path / "runs", {**os.environ, **fault}, "softmax", "sm_80")

    shown = tracing(dict(os.environ), "show", str(run))
    done = tracing({**os.environ, **fault}, "bisect", str(run), "--kernel", "softmax", "--crash")

    assert "softmax has no cubin: its passes of MLIR ended" in shown.stdout
    assert f"next      tracing bisect {run} --kernel softmax --crash" in shown.stdout
    assert done.returncode == 1, done.stderr
    assert re.search(r"softmax dies in gvn \(LLVM pass \d+, llir, on softmax\)", done.stdout)


UNKNOWN = '{"pass": "convert-nv-gpu-to-llvm", "edit": [["llvm.return", "%s\\nllvm.return"]], "first": true}'


@needs_llvm_options
def test_a_crash_in_llvm_names_the_llvm_pass(tmp_path: Path) -> None:
    call = 'llvm.call_intrinsic \\"llvm.amdgcn.s.barrier\\"() : () -> ()'
    variables = {**os.environ, "FAULT": UNKNOWN % call, "PYTHONPATH": str(COMPILER)}
    run = recorded(tmp_path, variables, "vector_add", "sm_80")

    done = tracing(variables, "bisect", str(run), "--crash")

    assert done.returncode == 1, done.stderr
    assert re.search(
        r"vector_add dies in nvptx-isel \((LLVM pass \d+, )?ptx, on function \(vector_add\)\)", done.stdout
    )
    assert "message        LLVM ERROR: Cannot select: intrinsic %llvm.amdgcn.s.barrier" in done.stdout


@pytest.mark.soak
def test_a_crash_in_ptxas_names_the_optimisation_levels_that_succeed(tmp_path: Path) -> None:
    script = tmp_path / "ptxas"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *"--opt-level 0"*|*--version*) exec "$REAL" "$@";; esac\n'
        "echo 'ptxas fatal : internal error 7' >&2; kill -SEGV $$\n"
    )
    script.chmod(0o755)
    variables = {**os.environ, "TRITON_PTXAS_PATH": str(script), "REAL": str(BINARIES / "ptxas")}
    run = recorded(tmp_path / "runs", variables, "vector_add", "sm_80")

    done = tracing(variables, "bisect", str(run), "--crash")

    assert done.returncode == 1, done.stderr
    assert "vector_add dies in ptxas (stage cubin)" in done.stdout
    assert re.search(r"its input      .*\.ptx\n", done.stdout)
    assert re.search(r"-O0            it ends\n +-O1            .+", done.stdout)


@pytest.mark.soak
def test_a_compile_that_does_not_crash_is_no_finding(tmp_path: Path) -> None:
    run = recorded(tmp_path, dict(os.environ), "vector_add", "sm_80")

    done = tracing(dict(os.environ), "bisect", str(run), "--crash")

    assert (done.returncode, done.stdout) == (0, "vector_add compiles, and takes less than 120 s\n")


@pytest.mark.soak
def test_a_kernel_that_does_not_compile_is_not_judged(tmp_path: Path) -> None:
    variables = dying("triton-combine", "error", "tt.reduce")
    run = recorded(tmp_path, variables, "softmax", "sm_80")

    done = tracing(variables, "bisect", str(run), "--", "true", "{ptx}")

    assert done.returncode == 2
    says = r"softmax does not compile, so there is nothing to judge: pass \d, triton-combine, failed"
    assert re.search(says, done.stderr)
    assert "--crash` says why" in done.stderr


def died(stderr: str = "", failure: str = "it was ended by SIGABRT", signal: str = "SIGABRT") -> ChildResult:
    return ChildResult(None, failure, False, stderr, 1.0, signal)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (
            "x.cpp:3: void f(): Assertion `a < 7' failed.",
            "x.cpp:3: void f(): Assertion `a < 7' failed.",
            True,
        ),
        ("x.cpp:3: void f(): Assertion `a' failed.", "x.cpp:3: void f(): Assertion `b' failed.", False),
        ("LLVM ERROR: Cannot select: 0x55: t12", "LLVM ERROR: Cannot select: 0x77: t13", True),
        ("LLVM ERROR: Cannot select", "LLVM ERROR: out of memory", False),
        (
            "not a constant\nUNREACHABLE executed at a.h:7!",
            "not a constant\nUNREACHABLE executed at a.h:9!",
            True,
        ),
        ("not a constant\nUNREACHABLE executed at a.h:7!", "odd\nUNREACHABLE executed at a.h:7!", False),
        ("", "", True),
    ],
)
def test_two_crashes_are_the_same_if_their_messages_match(a: str, b: str, same: bool) -> None:
    assert early_end_of(died(a), "pipeline").same(early_end_of(died(b), "pipeline")) is same
    assert not early_end_of(died(a), "pipeline").same(early_end_of(died(b), "coalesce"))


def test_diagnostics_are_compared_without_locations_and_numbers() -> None:
    a, b = (
        early_end_of(
            died(f"k.py:{n}:1: error: size {n} of %{n} is odd", "RuntimeError: failed", ""), "pipeline"
        )
        for n in (3, 44)
    )

    assert a.same(b)
    assert a.kind == "diagnostic"
