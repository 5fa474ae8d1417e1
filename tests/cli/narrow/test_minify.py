"""`tracing minify`: the answer and the script. tests/soak has more."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from commands import DATA, tracing
from documents.json_keys import require_documented


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer of a search that finishes, for an accelerator without a tanh."""
    folder = tmp_path_factory.mktemp("minify")
    options = ("--predicate", "constraint", "--unsupported", "tanh", "-o", str(folder))
    done = tracing("minify", str(DATA / "checked.py"), "--json", *options, runs=folder)
    assert done.returncode == 1, done.stderr
    require_documented(done.stdout, "## `tracing minify`")
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def test_the_smallest_graph_fails_and_so_does_its_script(answer: dict[str, Any]) -> None:
    assert answer["finished"] and answer["kept"] == ["tanh"]
    assert answer["symptom"]["kind"] == "violates"
    assert answer["reproduces"], answer["said"]


def test_a_script_imports_neither_this_project_nor_pickle(answer: dict[str, Any]) -> None:
    tree = ast.parse(Path(answer["script"]).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}

    allowed = {"sys", "os", "pathlib", "functorch", "torch", "safetensors", "triton"}
    assert {str(module).split(".")[0] for module in modules} <= allowed


def test_a_setting_that_inductor_lacks_is_refused(tmp_path: Path) -> None:
    options = ("--predicate", "kernels", "--setting", "max_fusion_sizes=1")
    done = tracing("minify", str(DATA / "checked.py"), *options, runs=tmp_path)

    assert done.returncode == 2
    assert "has no setting max_fusion_sizes\n  nearest: max_fusion_size" in done.stderr


DYNAMIC = """from tracing import Workload
def f(x):
    return x.relu() + 1
def build(device):
    return Workload(f, (__import__("torch").ones(24, 16, device=device),), dynamic=True)
"""


def test_sizes_that_are_symbols_violate_a_constraint_in_the_script_too(tmp_path: Path) -> None:
    (case := tmp_path / "case.py").write_text(DYNAMIC)
    constraint = ("--alignment", "16", "--dimension", "0", "--dtype", "float64", "-o", str(tmp_path / "out"))
    done = tracing("minify", str(case), "--predicate", "constraint", *constraint, "--json", runs=tmp_path)

    assert json.loads(done.stdout)["reproduces"], done.stdout


@pytest.mark.soak
def test_the_same_command_prints_what_is_known_and_executes_nothing(answer: dict[str, Any]) -> None:
    folder = Path(answer["script"]).parent
    options = ("--predicate", "constraint", "--unsupported", "tanh", "-o", str(folder))
    done = tracing("minify", str(DATA / "checked.py"), *options, runs=folder)

    assert done.returncode == 1, done.stderr
    assert f"{answer['executed']} executions known from " in done.stderr
    assert "does not fail" not in done.stderr and "element" not in done.stderr
    assert f"by {answer['executions']} executions, 0 of them now" in done.stdout
