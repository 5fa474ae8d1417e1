"""Find the environment variables that a program's source names, because its results may depend on them.

The program is only read: a function in place of `os.environ.get` would be traced by torch.compile.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tracing.model import ReadVariable
from tracing.program.user_code import imported_files
from tracing.program.variables import recorded_variable

_READERS = ("get", "setdefault", "pop", "getenv")


def named_variables(source: str) -> Iterator[str]:
    """The names in `os.environ["A"]`, `os.environ.get("A")`, `os.getenv("A")` and `"A" in os.environ`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_environ(node.value):
            yield from _literal(node.slice)
        elif isinstance(node, ast.Compare) and any(map(_is_environ, node.comparators)):
            yield from _literal(node.left)
        elif isinstance(node, ast.Call) and node.args and _reads(node.func):
            yield from _literal(node.args[0])


def variables_of_program(values: Mapping[str, str]) -> list[ReadVariable]:
    """The variables that the imported files of the user's own code name, in order of their names.

    values -- of all variables, when the program started
    """
    names = {name for path in imported_files() for name in _in_file(path)}
    return [recorded_variable(name, values.get(name)) for name in sorted(names)]


def _in_file(path: Path) -> Iterator[str]:
    with suppress(OSError, SyntaxError, ValueError):
        source = path.read_text()
        if "environ" in source or "getenv" in source:
            yield from named_variables(source)


def _reads(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "getenv"
    return (
        isinstance(function, ast.Attribute)
        and function.attr in _READERS
        and (function.attr == "getenv" or _is_environ(function.value))
    )


def _is_environ(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )


def _literal(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
