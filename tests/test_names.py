"""One name, one type: a reader who has met a name knows what it means everywhere."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from commands import ROOT


def types(module: Path) -> Iterator[str]:
    """The public classes, type aliases and types of options of a module; of classes also the nested ones."""
    tree = ast.parse(module.read_text())
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            yield ast.unparse(node.target)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):  # X = Mapping[str, Any]
            yield from (name.id for name in node.targets if isinstance(name, ast.Name) and _is_type(name.id))


def _is_type(name: str) -> bool:
    return re.fullmatch("[A-Z][a-z]\\w*", name) is not None


def test_a_public_type_has_a_name_of_its_own() -> None:
    files = defaultdict(set)
    for module in (ROOT / "tracing").rglob("*.py"):
        for name in types(module):
            files[name].add(module.relative_to(ROOT).as_posix())

    assert {n: sorted(f) for n, f in files.items() if len(f) > 1 and not n.startswith("_")} == {}
