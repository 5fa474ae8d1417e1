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


def minified(case: str, folder: Path, *options: str) -> dict[str, Any]:
    done = tracing("minify", case, "--json", "-o", str(folder), *options, runs=folder)
    assert done.returncode == 1, done.stderr
    require_documented(
        done.stdout, "## `tracing minify`", "inputs[].name", "inputs[].dtype", "inputs[].shape",
        "inputs[].stride", "inputs[].grad", "inputs[].shares",
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer for a wrong program, whose graph is executed once and not searched."""
    return minified(CASE, tmp_path_factory.mktemp("whole"), "--tries", "1")


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer of a search that finishes, for an accelerator without a sigmoid."""
    options = ("--predicate", "constraint", "--unsupported", "sigmoid")
    return minified("gated_mlp", tmp_path_factory.mktemp("refused"), *options)


def test_a_wrong_graph_and_its_script_fail_in_the_same_manner(whole: dict[str, Any]) -> None:
    assert whole["symptom"]["kind"] == "differs" and not whole["finished"]
    assert whole["reproduces"], whole["said"]


def test_the_smallest_graph_violates_and_so_does_its_script(refused: dict[str, Any]) -> None:
    assert refused["finished"] and refused["nodes"]["after"] == 1 < refused["nodes"]["before"]
    assert "sigmoid" in refused["code"]
    assert refused["reproduces"], refused["said"]


@pytest.mark.parametrize("name", ["whole", "refused"])
def test_a_script_imports_neither_this_project_nor_pickle(name: str, request: pytest.FixtureRequest) -> None:
    tree = ast.parse(Path(request.getfixturevalue(name)["script"]).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}

    assert {str(module).split(".")[0] for module in modules} <= {
        "sys",
        "os",
        "pathlib",
        "functorch",
        "torch",
        "safetensors",
        "triton",
    }


def test_a_graph_that_does_not_fail_is_one_clear_error(tmp_path: Path) -> None:
    done = tracing("minify", CASE, "--json", "--predicate", "constraint", runs=tmp_path)

    assert done.returncode == 2
    assert done.stdout == ""
    assert "no graph of the case fails" in done.stderr and "Traceback" not in done.stderr
