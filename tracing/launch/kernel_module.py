"""Write a kernel, and the parts of its module that it uses, as a standalone Python file.

Objects of torch, Triton or the standard library are imported. Constants are written as literals, functions
that the kernel calls as their source, with their own dependencies, and a module of the program as one with
the members that the kernel uses. Other objects, and two objects with one name, are reported by name, so that
no incomplete kernel is executed.
"""

from __future__ import annotations

import ast
import builtins
import math
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from tracing.interpreter.exclusion import LANGUAGE
from tracing.upstream.inductor.code import triton_helpers
from tracing.upstream.triton.jit import ConstexprFunction, GluonJITFunction, JITFunction, source_of

_PACKAGES = tuple(Path(str(package.__file__)).parent for package in (torch, triton))
_NAMES = ("KERNEL", "CONSTANTS", "OPTIONS", "FIELDS")
_GLUON = "import triton.experimental.gluon"
_OURS: Mapping[str, object] = dict.fromkeys(_NAMES, ...)  # no kernel's names
_INDUCTOR: Mapping[str, object] = {  # names that Inductor's generated modules define for their kernels
    "triton": triton,
    "tl": tl,
    "triton_helpers": triton_helpers,
    "libdevice": libdevice,
    "tl_math": tl.math,
}


@dataclass(frozen=True, slots=True)
class KernelModule:
    """The text of a module that defines `KERNEL`, and the missing names."""

    text: str
    undefined: tuple[str, ...]


def kernel_module(function: Any, passed: Sequence[Any] = ()) -> KernelModule | None:
    """Write the module of a kernel; None if its source is not known.

    function -- a JITFunction; one that a worker process compiled may have lost its module, and is then taken
                for one of Inductor's own
    passed   -- the JITFunctions that it receives as constants, which the module defines, too

    Cost: about 1 ms and as much for each function that it calls.
    """
    if not isinstance(function, JITFunction) or not source_of(function):
        return None
    if not function.__name__.isidentifier():
        return KernelModule("", (function.__name__,))
    written = _Written()
    for one in (*passed, function):  # the kernel last
        written.define(one.__name__, one)
    imports = "\n".join(["import triton", "import triton.language", *written.imports])
    text = "\n\n".join([imports, *written.blocks, f"KERNEL = {function.__name__}\n"])
    return KernelModule(text, tuple(written.undefined))


class _Written:
    # the module written so far; definitions come before their uses

    def __init__(self) -> None:
        self.imports: list[str] = []
        self.blocks: list[str] = []
        self.undefined: dict[str, None] = {}
        self._values: dict[str, object] = {"triton": triton, **_OURS}

    def define(self, name: str, value: Any) -> None:
        if name in self._values:
            if not _same(self._values[name], value):
                self.undefined[name] = None
            return
        self._values[name] = value
        if text := _import(name, value):
            self.imports.append(text)
        elif text := _expression(value):
            self.blocks.append(f"{name} = {text}")
        elif (function := _function(value)) is not None:
            if function.__name__ == name:
                self._define_function(function, value)
            else:
                self.define(function.__name__, value)
                self.blocks.append(f"{name} = {function.__name__}")
        else:
            self.undefined[name] = None

    def _define_module(self, path: str, module: Any, members: Sequence[tuple[str, ...]]) -> None:
        # a module of the program with those of its members that a function uses: (("helpers", "square"), ...)
        if path not in self._values:
            self._values[path] = module
            self.blocks.append(f'{path} = type(triton)("{path}")')
        if self._values[path] is not module or not all(members):
            self.undefined[path] = None  # two modules of one name, or used as a value
            return
        for name, *further in members:
            value, whole = getattr(module, name, None), f"{path}.{name}"
            if _is_of_program(name, value):
                self._define_module(whole, value, [tuple(further)])
            elif whole not in self._values:
                self._values[whole] = value
                self.define(name, value)
                self.blocks.append(f"{whole} = {name}")

    def _define_function(self, function: Any, value: Any) -> None:
        # value -- the function, or what the program has made of it
        source = textwrap.dedent(source_of(function))
        with LANGUAGE:  # CPython 3.11.7 and before lose count where threads parse at once (gh-106905)
            tree = ast.parse(source)
        node = next(one for one in tree.body if isinstance(one, ast.FunctionDef))
        scope = _scope(function)
        for name in _free_names(node):
            if name in scope and _is_of_program(name, scope[name]):
                self._define_module(name, scope[name], list(_members(node, name)))
            elif name in scope:
                self.define(name, scope[name])
            elif not hasattr(builtins, name):
                self.undefined[name] = None
        body = "\n".join(source.splitlines()[node.lineno - 1 :])
        if isinstance(function, GluonJITFunction) and _GLUON not in self.imports:
            self.imports.append(_GLUON)
        # by the name that it has now: the program may have changed it, as that of each kernel of a factory
        body = body.replace(f"def {node.name}", f"def {function.__name__}", 1)
        self.blocks.append("\n".join([*_decorators(value, node), body]))


def _function(value: Any) -> Any:
    # a function of Triton, or one of Python: functions of constants call it, and kernels as `tl.constexpr(f)`
    if isinstance(value, (JITFunction, ConstexprFunction)):
        return value
    inner = value.value if isinstance(value, tl.constexpr) else value
    decorated = hasattr(inner, "__wrapped__")  # its source is of another function
    if not isinstance(inner, FunctionType) or decorated or not inner.__name__.isidentifier():
        return None
    try:
        return ConstexprFunction(inner)
    except (OSError, ValueError):  # its source is not known
        return None


def _scope(function: Any) -> Mapping[str, object]:
    python = function.fn
    if python is None or function.__globals__ is None:
        return _INDUCTOR
    cells = zip(python.__code__.co_freevars, python.__closure__ or (), strict=True)
    return {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}


def _free_names(function: ast.FunctionDef) -> Iterator[str]:
    parts = [function.args, *function.body, *filter(None, [function.returns])]
    nodes = [node for part in parts for node in ast.walk(part)]
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    yield from dict.fromkeys(node.id for node in names if node.id not in bound)


def _members(function: ast.FunctionDef, name: str) -> Iterator[tuple[str, ...]]:
    # the attributes that follow a name: ("helpers", "square") of `package.helpers.square(x)`, () of the name
    inner = {id(node.value) for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    for node in ast.walk(function):
        if id(node) not in inner and isinstance(node, (ast.Attribute, ast.Name)):
            first, *further = _names(node)
            if first == name:
                yield tuple(further)


def _names(node: ast.expr) -> list[str]:
    # [helpers, square] of `helpers.square`; of `helpers.square(x).to`, whose call is a node of its own, [""]
    if isinstance(node, ast.Attribute):
        first, *further = _names(node.value)
        return [first, *further, node.attr] if first else [""]
    return [node.id if isinstance(node, ast.Name) else ""]


def _is_of_program(name: str, value: object) -> bool:
    return isinstance(value, ModuleType) and not _import(name, value)


def _decorators(value: Any, node: ast.FunctionDef) -> list[str]:
    if isinstance(value, FunctionType):
        return []
    if isinstance(value, tl.constexpr):
        return ["@triton.language.constexpr"]
    return ["@triton.constexpr_function" if isinstance(value, ConstexprFunction) else _jit(value, node)]


def _jit(function: Any, node: ast.FunctionDef) -> str:
    # decorators of Inductor and autotuners are dropped; arguments of @triton.jit are kept
    jit = "@triton.experimental.gluon.jit" if isinstance(function, GluonJITFunction) else "@triton.jit"
    for one in node.decorator_list:
        if isinstance(one, ast.Call) and ast.unparse(one.func).split(".")[-1] == "jit":
            keywords = [
                keyword for keyword in one.keywords if isinstance(keyword.value, (ast.Constant, ast.List))
            ]
            return f"{jit}({', '.join(ast.unparse(keyword) for keyword in keywords)})"
    return jit


def _import(name: str, value: Any) -> str:
    # "" if that import would give another value
    if isinstance(value, ModuleType):
        where = value.__name__
        return f"import {where}{f' as {name}' if name != where else ''}" if _everywhere(where) else ""
    module, own = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(own, str) or not _everywhere(module):
        return ""
    importable = getattr(sys.modules.get(module), own, None) is value
    return f"from {module} import {own}{f' as {name}' if name != own else ''}" if importable else ""


def _everywhere(module: str) -> bool:
    # Inductor names the modules that it generates as if they were its own
    if module.partition(".")[0] in sys.stdlib_module_names:
        return module != "__main__"
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and any(Path(file).is_relative_to(package) for package in _PACKAGES)


def _expression(value: Any) -> str:
    # "" if it contains more than literals and Triton's types
    if isinstance(value, tl.constexpr):
        inner = _expression(value.value)
        return f"triton.language.constexpr({inner})" if inner else ""
    if type(value) is tl.dtype:
        return f"triton.language.dtype({str(value)!r})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if type(value) is tuple:
        items = [_expression(item) for item in value]
        return f"({''.join(f'{item}, ' for item in items)})" if all(items) else ""
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else ""


def _same(one: object, other: object) -> bool:
    text = _expression(one)
    return one is other or (text != "" and text == _expression(other))
