"""Command line tools of LLVM and Triton under gdb, by the configurations of `make vscode`."""

from __future__ import annotations

from pathlib import Path

import pytest
from debugger.conftest import gdb_for, gdb_that_calls
from debugger.dap import Message
from debugger.editor import chosen, generated
from debugger.native import KINDS, stopped

LL = """define i32 @double(i32 %x) {
  %sum = add i32 %x, 0
  %twice = mul i32 %sum, 2
  ret i32 %twice
}
"""
MLIR = """// RUN: not triton-opt %s \\
// RUN:   --cse --canonicalize 2>&1 | FileCheck %s
// CHECK: tt.func
tt.func @twice(%x: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %sum = arith.addi %x, %zero : i32
  tt.return %sum : i32
}
"""


def entry(folder: Path, kind: str, name: str, file: Path, **inputs: str) -> Message:
    launch = generated(folder, "--debugger", kind, gdb=gdb_for(kind))
    name = name.replace("gdb", "lldb") if kind == "lldb-dap" else name
    if not any(one["name"] == name for one in launch["configurations"]):
        pytest.skip(f"no configuration {name}: its tool is not on this machine")
    return chosen(launch, name, file, **inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_opt_bisect_stops_before_the_last_pass_that_the_limit_lets_run(tmp_path: Path, kind: str) -> None:
    (tmp_path / "double.ll").write_text(LL)
    configuration = entry(tmp_path, kind, "LLVM: opt-bisect under gdb", tmp_path / "double.ll", limit="4")
    stop = stopped(configuration, "bt")

    assert stop.function.startswith("llvm::OptBisect::")
    assert "PassManager" in stop.said[0]


@pytest.mark.parametrize("kind", KINDS)
def test_triton_opt_stops_in_the_first_pass_of_the_pipeline(tmp_path: Path, kind: str) -> None:
    (tmp_path / "twice.mlir").write_text(MLIR)
    pipeline = "builtin.module(tt.func(cse),canonicalize)"
    configuration = entry(
        tmp_path, kind, "LLVM: triton-opt under gdb", tmp_path / "twice.mlir", pipeline=pipeline
    )
    stop = stopped(configuration)

    assert "CSE::runOnOperation" in stop.function


@pytest.mark.parametrize("kind", KINDS)
def test_a_lit_test_stops_in_the_first_pass_of_its_run_line(tmp_path: Path, kind: str) -> None:
    (tmp_path / "twice.mlir").write_text(MLIR)
    gdb_that_calls(kind)
    asked = () if kind == "lldb-dap" else ("pass-info", "print-op")
    stop = stopped(entry(tmp_path, kind, "LLVM: lit test under gdb", tmp_path / "twice.mlir"), *asked)

    assert "CSE::runOnOperation" in stop.function
    assert not asked or ("pass      cse, " in stop.said[0] and "tt.func @twice" in stop.said[1])
