"""Imports point in one direction, and only `tracing/upstream` names private objects of torch and Triton."""

from __future__ import annotations

import ast
import re
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
    "attach": {"errors", "elf", "model", "store", "upstream", "environment", "compiler", "attach"},
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


# Triton has no leading underscores for what it does not promise: these packages are not in its documentation.
PRIVATE_PACKAGES = ("triton.backends", "triton.compiler", "triton.knobs", "triton.runtime")


def is_private(name: str) -> bool:
    """True for "torch._C.ir" and "triton.runtime.jit"; False for "torch.__path__"."""
    parts = name.split(".")
    if parts[0] not in ("torch", "triton"):
        return False
    hidden = any(part.startswith("_") and not part.startswith("__") for part in parts)
    return hidden or any(name == package or name.startswith(f"{package}.") for package in PRIVATE_PACKAGES)


def qualified_names(tree: ast.AST) -> set[str]:
    """Imported names, attributes of imported modules, and strings that are the dotted name of a module."""
    nodes = list(ast.walk(tree))
    origins: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            origins |= {a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0]
                        for a in node.names}  # fmt: skip
        elif isinstance(node, ast.ImportFrom):
            origins |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    result = set(origins.values())
    result |= {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"(torch|triton)(\.\w+)+\.?", node.value):
                result.add(node.value)
        elif isinstance(node, ast.Attribute):
            root, _, rest = ast.unparse(node).partition(".")
            if root in origins:
                result.add(f"{origins[root]}.{rest}")
    return result


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("from torch._C import ir", "torch._C.ir"),
        ("import torch._dynamo", "torch._dynamo"),
        ("import torch\ntorch._C.x()", "torch._C.x"),
        ("import torch as t\nt.cuda._sleep(1)", "torch.cuda._sleep"),
        ("import triton\ntriton.knobs.runtime", "triton.knobs.runtime"),
        ("replaced('triton.runtime.autotuner', 1)", "triton.runtime.autotuner"),
    ],
)
def test_a_private_object_is_recognised_however_it_is_named(code: str, name: str) -> None:
    assert name in filter(is_private, qualified_names(ast.parse(code)))


def test_public_objects_are_not_private() -> None:
    code = "import torch, triton\nself._x; torch.__path__; triton.Config; torch.cuda.is_available"

    assert not [*filter(is_private, qualified_names(ast.parse(code)))]


def test_private_objects_of_torch_and_triton_are_named_in_upstream_only() -> None:
    private = {
        str(module)
        for module in MODULES
        if layer(module) != "upstream"
        and any(map(is_private, qualified_names(ast.parse((PACKAGE / module).read_text()))))
    }

    assert not private


# Private by their name, and documented by Python: named tuples, frames, the end of a process.
DOCUMENTED = {"_replace", "_fields", "_getframe", "_current_frames", "_exit", "_asdict"}


def test_private_attributes_of_torch_and_triton_are_read_in_upstream_only() -> None:
    read: set[str] = set()
    defined: set[str] = set()
    for module in MODULES:
        if layer(module) == "upstream":
            continue
        for node in ast.walk(ast.parse((PACKAGE / module).read_text())):
            if isinstance(node, ast.Attribute):
                (defined if isinstance(node.ctx, ast.Store) else read).add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                defined.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                defined.add(node.name)

    private = {name for name in read if re.match("_[^_]", name)}
    assert private <= defined | DOCUMENTED
