"""Imports point in one direction, and only `tracing/upstream` names private objects of torch and Triton."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tracing"

BASE = {"errors", "model", "environment", "upstream", "views", "digest.columns"}
LAYERS = {  # module or package -> what it may import, itself included
    "errors": set(),
    "model": {"model"},
    "views": {"model"},
    "environment": {"errors", "model"},
    "elf": set(),
    "upstream": {"upstream"},
    "digest.columns": {"model"},
    "digest": {"model", "upstream", "native", "digest.columns", "digest"},
    "store": {"errors", "model", "environment", "digest.columns", "store"},
    "mlir": {"errors", "mlir"},
    "interpreter": {"errors", "environment", "upstream", "interpreter"},
    "virtual_gpu": {"errors", "model", "elf", "upstream", "interpreter", "virtual_gpu"},
    "compiler": {"errors", "elf", "model", "upstream", "environment", "compiler"},
    "native": {"environment", "native"},
    "launch": {*BASE, "native", "store", "digest", "interpreter", "launch"},
    "operators": {"model", "upstream", "native", "launch", "operators"},
    "program": {*BASE, "store", "digest", "virtual_gpu", "program"},
    "perturb": {*BASE, "store", "interpreter", "launch", "operators", "perturb"},
    "numerics": {*BASE, "store", "digest", "launch", "operators", "program", "numerics"},
}
EXECUTION = {
    "native",
    "store",
    "digest",
    "interpreter",
    "virtual_gpu",
    "compiler",
    "launch",
    "operators",
    "program",
}
LAYERS |= {
    "record": {*BASE, *EXECUTION, "perturb", "numerics", "record"},
    "debug_mode": {*BASE, *EXECUTION, "record", "debug_mode"},
    "replay": {*BASE, *EXECUTION, "numerics", "record", "replay"},
    "analyze": {"errors", "model", "views", "digest.columns", "store", "mlir", "analyze"},
    "report": {"errors", "model", "store", "analyze", "report"},
    "judge": {*BASE, *EXECUTION, "numerics", "record", "analyze", "judge"},
    "backend": {*BASE, *EXECUTION, "record", "backend"},
    "guards": {*BASE, *EXECUTION, "record", "analyze", "report", "guards"},
    "bench": {*BASE, *EXECUTION, "record", "numerics", "backend", "analyze", "bench"},
    "minify": {*BASE, *EXECUTION, "numerics", "backend", "analyze", "minify"},
    "attach": {"errors", "elf", "model", "store", "upstream", "environment", "compiler", "attach"},
    "cli": {
        *BASE,
        *EXECUTION,
        "mlir",
        "numerics",
        "record",
        "backend",
        "guards",
        "bench",
        "replay",
        "judge",
        "minify",
        "analyze",
        "report",
        "attach",
        "cli",
    },
    "__main__": {"cli"},
    "__init__": {"model", "upstream", "backend", "guards", "numerics", "record"},
}
TORCH = {
    "upstream",
    *EXECUTION,
    "perturb",
    "numerics",
    "backend",
    "guards",
    "bench",
    "record",
    "debug_mode",
    "replay",
    "judge",
    "minify",
}
TORCH -= {"store", "compiler"}
TRITON = {*TORCH, "compiler", "attach"} - {"program", "numerics", "judge", "backend", "guards", "bench"}
TRITON -= {"minify"}
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def layer(module: Path) -> str:
    return _layer([part.removesuffix(".py") for part in module.parts])


def _layer(parts: Sequence[str]) -> str:
    return "digest.columns" if list(parts[:2]) == ["digest", "columns"] else parts[0]


@cache
def parsed(module: Path) -> ast.Module:
    return ast.parse((PACKAGE / module).read_text())


@cache
def imports(module: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_modules_import_only_from_the_layers_below_them() -> None:
    above = {}
    for module in MODULES:
        own = {_layer(name.split(".")[1:]) for name in imports(module) if name.startswith("tracing.")}
        above[str(module)] = own - LAYERS[layer(module)]

    assert {module: layers for module, layers in above.items() if layers} == {}


def test_torch_triton_and_cases_are_imported_only_where_they_may_be() -> None:
    allowed = {"torch": TORCH, "triton": TRITON, "cases": set[str]()}
    roots = {module: {name.split(".")[0] for name in imports(module)} for module in MODULES}

    assert [
        f"{module} imports {root}"
        for module in MODULES
        for root, layers in allowed.items()
        if root in roots[module] and layer(module) not in layers
    ] == []


def dotted(module: Path) -> str:
    return ".".join(["tracing", *module.with_suffix("").parts]).removesuffix(".__init__")


def test_no_import_closes_a_cycle_wherever_in_its_module_it_stands() -> None:
    modules = {
        dotted(module): module for module in MODULES if module.name != "__init__.py" or module.parts[1:]
    }
    imported = {name: {one if one in modules else one.rpartition(".")[0] for one in imports(module)}
                for name, module in modules.items()}  # fmt: skip

    graph = {name: (of & modules.keys()) - {name} for name, of in imported.items()}
    order = [*TopologicalSorter(graph).static_order()]  # raises CycleError

    assert set(order) == set(modules)


def names(module: Path) -> set[str]:
    """Every name in its code; text, as that of a script it writes, has none."""
    nodes = list(ast.walk(parsed(module)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return names | {node.name for node in nodes if isinstance(node, ast.alias)}


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
    """Imported names, what is read of them, and strings that are the dotted name of a module."""
    nodes = list(ast.walk(tree))
    origins: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            origins |= {a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0]
                        for a in node.names}  # fmt: skip
        elif isinstance(node, ast.ImportFrom):
            origins |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    for node in nodes:  # module = torch.cuda
        if isinstance(node, ast.Assign) and (name := _qualified(node.value, origins)):
            origins |= {target.id: name for target in node.targets if isinstance(target, ast.Name)}
    result = set(origins.values())
    result |= {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"(torch|triton)(\.\w+)+\.?", node.value):
                result.add(node.value)
        elif isinstance(node, ast.expr) and (name := _qualified(node, origins)):
            result.add(name)
    return result


def _qualified(node: ast.expr, origins: dict[str, str]) -> str | None:
    # of a name, an attribute, getattr(module, "name"), vars(module)["name"] or module.__dict__["name"]
    match node:
        case ast.Name(id=name):
            return origins.get(name)
        case (
            ast.Attribute(value=owner, attr=str(name))
            | ast.Call(func=ast.Name(id="getattr" | "setattr" | "delattr" | "hasattr"),
                       args=[owner, ast.Constant(value=str(name)), *_])
            | ast.Subscript(value=ast.Call(func=ast.Name(id="vars"), args=[owner]),
                            slice=ast.Constant(value=str(name)))
        ):  # fmt: skip
            outer = _qualified(owner, origins)
            return f"{outer.removesuffix('.__dict__')}.{name}" if outer else None
        case ast.Subscript(
            value=ast.Attribute(attr="__dict__") as owner, slice=ast.Constant(value=str(name))
        ):
            outer = _qualified(owner, origins)
            return f"{outer.removesuffix('.__dict__')}.{name}" if outer else None
    return None


# Functions of which an argument is the name of an attribute, and those that import a module by its name.
BY_NAME = {"getattr", "hasattr", "setattr", "delattr", "attrgetter", "methodcaller", "replaced", "patched"}
IMPORTERS = {"import_module", "__import__", "find_spec"}


def texts(tree: ast.AST, functions: set[str]) -> Iterator[ast.expr]:
    """The arguments of calls of these functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield from node.args if called in functions else ()


def attribute_texts(tree: ast.AST) -> set[str]:
    """Names of attributes that are given as strings: getattr(x, "name"), vars(x)["name"]."""
    keys = [node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript)
            and ("vars(" in ast.unparse(node.value) or "__dict__" in ast.unparse(node.value))]  # fmt: skip
    arguments = [*texts(tree, BY_NAME), *keys]
    return {part for node in arguments if isinstance(node, ast.Constant) and isinstance(node.value, str)
            for part in node.value.split(".")}  # fmt: skip


# Import by a variable: this package's exports, the module of a command, the packages whose files are not the
# user's, a hash function, the module that Python asks a finder for. What is only looked for: the package of
# `-m`, and those that a case imports.
IMPORTED_BY_VARIABLE = {"__init__.py", "attach/fast_imports.py", "cli/app.py", "cli/options/program_words.py",
                        "program/case.py", "program/user_code.py",
                        "record/launches/user_hash.py"}  # fmt: skip


def test_no_module_is_imported_by_a_name_that_is_put_together() -> None:
    importing = {
        str(module)
        for module in MODULES
        if layer(module) != "upstream"
        for argument in [*texts(parsed(module), IMPORTERS)][:1]
        if not isinstance(argument, ast.Constant)
    }

    assert importing == IMPORTED_BY_VARIABLE


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("from torch._C import ir", "torch._C.ir"),
        ("import torch._dynamo", "torch._dynamo"),
        ("import torch\ntorch._C.x()", "torch._C.x"),
        ("import torch as t\nt.cuda._sleep(1)", "torch.cuda._sleep"),
        ("import triton\ntriton.knobs.runtime", "triton.knobs.runtime"),
        ("replaced('triton.runtime.autotuner', 1)", "triton.runtime.autotuner"),
        ("import_module('torch._C')", "torch._C"),
        ("import torch\ngetattr(torch, '_C').x()", "torch._C"),
        ("import torch\ngetattr(getattr(torch, 'cuda'), '_sleep')(1)", "torch.cuda._sleep"),
        ("import torch\nvars(torch)['_C']", "torch._C"),
        ("import torch\ntorch.__dict__['_C']", "torch._C"),
        ("import torch\nmodule = torch.cuda\nmodule._sleep(1)", "torch.cuda._sleep"),
        ("import triton\nmodule = triton\nmodule.runtime.jit", "triton.runtime.jit"),
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
        if layer(module) != "upstream" and any(map(is_private, qualified_names(parsed(module))))
    }

    assert not private


def test_private_files_of_torch_and_triton_are_named_in_upstream_only() -> None:
    path = re.compile(r"(torch|triton)/(\w+/)*_[a-z]\w*(/|\.py)")
    naming = {
        f"{module} names {node.value}"
        for module in MODULES
        if layer(module) != "upstream"
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and path.match(node.value)
    }

    assert not naming


# Private by their name, and documented by Python: named tuples, frames, the end of a process.
PYTHONS = {"_execute_child"}  # of subprocess.Popen, whose frame shows that a fork starts another program
GDBS = {"_clear_frame_ids"}  # of gdb.dap.frames: drops the frames that gdb's own debug adapter keeps
DOCUMENTED = {"_replace", "_fields", "_getframe", "_current_frames", "_exit", "_asdict"}


def test_private_attributes_of_torch_and_triton_are_read_in_upstream_only() -> None:
    read: set[str] = set()
    defined: set[str] = set()
    for module in MODULES:
        if layer(module) == "upstream":
            continue
        tree = parsed(module)
        read |= attribute_texts(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                (defined if isinstance(node.ctx, ast.Store) else read).add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                defined.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                defined.add(node.name)

    private = {name for name in read if re.match("_[^_]", name)}
    assert private <= defined | DOCUMENTED | PYTHONS | GDBS
