"""`tracing minify`: the answer, the script, and what cannot be minified. tests/soak has more.

Each command imports torch and compiles in child processes; one answer serves several tests.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from commands import DATA, tracing
from documented_keys import require_documented

CASE = str(DATA / "upstream/pytorch_175966.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("minify")


@pytest.fixture(scope="module")
def answer(folder: Path) -> dict[str, Any]:
    """The answer of a search that finishes."""
    done = tracing("minify", CASE, "--json", "-o", str(folder), runs=folder)
    assert done.returncode == 1, done.stderr
    require_documented(
        done.stdout, "## `tracing minify`", "inputs[].name", "inputs[].dtype", "inputs[].shape",
        "inputs[].stride", "inputs[].grad", "inputs[].shares",
    )  # fmt: skip
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def test_the_smallest_graph_fails_and_so_does_its_script(answer: dict[str, Any]) -> None:
    assert answer["nodes"]["after"] <= 3
    assert answer["symptom"]["kind"] == "differs"
    assert answer["reproduces"], answer["said"]


def test_a_script_imports_neither_this_project_nor_pickle(answer: dict[str, Any]) -> None:
    tree = ast.parse(Path(answer["script"]).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}

    assert {str(module).split(".")[0] for module in modules} <= {
        "sys",
        "os",
        "pathlib",
        "torch",
        "safetensors",
        "triton",
    }


def test_a_graph_that_does_not_fail_is_one_clear_error(tmp_path: Path) -> None:
    done = tracing("minify", "silu", "--json", runs=tmp_path)

    assert done.returncode == 2
    assert done.stdout == ""
    assert "no graph of the case fails" in done.stderr and "Traceback" not in done.stderr
