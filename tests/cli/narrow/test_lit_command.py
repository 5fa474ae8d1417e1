"""The command of a lit test's RUN line that vscode/lit_command.py starts under a debugger."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ROOT

lit_command = importlib.import_module("vscode.lit_command")


def test_a_continued_run_line_is_one_command_up_to_its_pipe() -> None:
    text = "// RUN: triton-opt %s -split-input-file \\\n// RUN:   --cse | FileCheck %s\n// RUN: false\n"

    assert lit_command.runnable(text, "a b.mlir") == ({}, ["a b.mlir", "-split-input-file", "--cse"])


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("not triton-opt %s -cse 2>&1 | FileCheck %s", ["t.mlir", "-cse"]),
        ("triton-opt %s -cse > %t.out", ["t.mlir", "-cse"]),
        ("triton-opt -cse < %s", ["-cse", "t.mlir"]),
        ("""triton-opt %s --pass-pipeline='a(b{c="d e"})'""", ["t.mlir", '--pass-pipeline=a(b{c="d e"})']),
    ],
)
def test_redirections_pipes_and_wrappers_are_left_out(line: str, arguments: list[str]) -> None:
    assert lit_command.runnable(f"// RUN: {line}\n", "t.mlir") == ({}, arguments)


def test_variables_before_the_command_are_set() -> None:
    text = "// RUN: split-file %s %t\n// RUN: env A=1 B='2 3' triton-opt %s\n"

    assert lit_command.runnable(text, "t.mlir") == ({"A": "1", "B": "2 3"}, ["t.mlir"])


@pytest.mark.parametrize(
    ("line", "said"), [("mlir-opt %s", "no RUN line with triton-opt"), ("triton-opt %t/a.mlir", "%t/a.mlir")]
)
def test_a_run_line_without_a_runnable_command_is_refused_with_the_reason(
    tmp_path: Path, line: str, said: str
) -> None:
    (tmp_path / "t.mlir").write_text(f"// RUN: {line}\n")
    command = [
        sys.executable,
        str(ROOT / "vscode/lit_command.py"),
        "--tool",
        "echo",
        str(tmp_path / "t.mlir"),
    ]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 2 and said in done.stderr
