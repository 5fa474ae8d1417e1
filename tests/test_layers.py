"""Imports point in one direction: the table of layers in docs/architecture.md."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tracing"

BASE = {"errors", "model", "environment", "upstream", "views", "digest.columns"}
LAYERS = {  # module or package -> what it may import, itself included
    "errors": set(),
    "model": set(),
    "views": {"model"},
    "environment": {"errors", "model"},
    "elf": set(),
    "upstream": {"upstream"},
    "digest.columns": {"model"},
    "digest": {"model", "upstream", "digest.columns", "digest"},
    "store": {"errors", "model", "digest.columns", "store"},
    "mlir": {"errors", "mlir"},
    "interpreter": {"errors", "upstream", "interpreter"},
    "virtual_gpu": {"errors", "elf", "upstream", "interpreter", "virtual_gpu"},
    "compiler": {"errors", "elf", "model", "upstream", "environment", "compiler"},
    "launch": {*BASE, "store", "digest", "interpreter", "launch"},
    "operators": {"upstream", "launch", "operators"},
    "program": {*BASE, "store", "digest", "virtual_gpu", "program"},
    "perturb": {*BASE, "store", "interpreter", "launch", "operators", "perturb"},
    "numerics": {*BASE, "store", "digest", "launch", "operators", "program", "numerics"},
}
EXECUTION = {"store", "digest", "interpreter", "virtual_gpu", "compiler", "launch", "operators", "program"}
LAYERS |= {
    "record": {*BASE, *EXECUTION, "perturb", "numerics", "record"},
    "debug_mode": {*BASE, *EXECUTION, "record", "debug_mode"},
    "replay": {*BASE, *EXECUTION, "numerics", "record", "replay"},
    "analyze": {"errors", "model", "views", "digest.columns", "store", "mlir", "analyze"},
    "report": {"errors", "model", "store", "analyze", "report"},
    "attach": {"errors", "elf", "model", "store", "environment", "compiler", "attach"},
    "cli": {*BASE, *EXECUTION, "mlir", "record", "replay", "analyze", "report", "attach", "cli"},
    "__main__": {"cli"},
    "__init__": {"model"},
}
TORCH = {"upstream", *EXECUTION, "perturb", "numerics", "record", "debug_mode", "replay"}
TORCH -= {"store", "compiler"}
TRITON = {*TORCH, "compiler", "attach"} - {"program", "numerics"}
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def layer(module: Path) -> str:
    return _layer([part.removesuffix(".py") for part in module.parts])


def _layer(parts: Sequence[str]) -> str:
    return "digest.columns" if list(parts[:2]) == ["digest", "columns"] else parts[0]


def imports(module: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse((PACKAGE / module).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_imports_only_from_the_layers_below_it(module: Path) -> None:
    own = {_layer(name.split(".")[1:]) for name in imports(module) if name.startswith("tracing.")}

    assert own <= LAYERS[layer(module)]


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_torch_triton_and_cases_are_imported_only_where_they_may_be(module: Path) -> None:
    roots = {name.split(".")[0] for name in imports(module)}

    assert "torch" not in roots or layer(module) in TORCH
    assert "triton" not in roots or layer(module) in TRITON
    assert "cases" not in roots


def names(module: Path) -> set[str]:
    """Every name in its code; text, as that of a script it writes, has none."""
    nodes = list(ast.walk(ast.parse((PACKAGE / module).read_text())))
    found = {node.id for node in nodes if isinstance(node, ast.Name)}
    found |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return found | {node.name for node in nodes if isinstance(node, ast.alias)}


def test_only_the_environment_module_reads_environment_variables() -> None:
    readers = {layer(m) for m in MODULES if names(m) & {"environ", "environb", "getenv", "getenvb"}}

    assert readers == {"environment"}
