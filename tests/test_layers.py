"""Imports point one way: the table of the architecture, and nothing beside it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tracing"

LAYERS = {  # module or package -> what of `tracing` it may import
    "errors": set(),
    "model": set(),
    "patch": set(),
    "dynamo": set(),
    "environment": {"errors", "model"},
    "digests": {"model"},
    "views": {"model"},
    "store": {"errors", "model", "digests", "store"},
    "case": {"errors", "model"},
    "virtual_gpu": {"errors", "patch", "dynamo", "interpreter", "virtual_gpu"},
    "interpreter": {"errors", "patch", "interpreter"},
    "compiler": {"errors", "model", "patch", "environment", "compiler"},
    "record": {
        "errors",
        "model",
        "patch",
        "dynamo",
        "digests",
        "views",
        "environment",
        "store",
        "case",
        "virtual_gpu",
        "interpreter",
        "compiler",
        "record",
    },
    "replay": {
        "errors",
        "model",
        "patch",
        "digests",
        "store",
        "case",
        "interpreter",
        "record",
        "replay",
    },
    "analyze": {"errors", "model", "digests", "views", "store", "mlir", "analyze"},
    "mlir": {"errors", "mlir"},
    "report": {"errors", "model", "store", "analyze", "report"},
    "attach": {"errors", "model", "store", "environment", "compiler", "attach"},
    "cli": {
        "errors",
        "model",
        "environment",
        "store",
        "case",
        "virtual_gpu",
        "compiler",
        "record",
        "replay",
        "mlir",
        "analyze",
        "report",
        "attach",
        "cli",
    },
    "__main__": {"cli"},
    "__init__": {"model"},
}
TORCH = {"dynamo", "virtual_gpu", "interpreter", "record", "replay"}
TRITON = {"virtual_gpu", "interpreter", "record", "replay", "compiler", "attach"}
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def layer(module: Path) -> str:
    return module.parts[0].removesuffix(".py")


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
    own = {name.split(".")[1] for name in imports(module) if name.startswith("tracing.")}

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
