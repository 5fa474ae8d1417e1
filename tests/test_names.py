"""One name, one type: a reader who has met a name knows what it means everywhere."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from commands import ROOT


def types(module: Path) -> Iterator[str]:
    """The public classes and type aliases of a module."""
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            yield ast.unparse(node.target)


def test_a_public_type_has_a_name_of_its_own() -> None:
    files = defaultdict(set)
    for module in (ROOT / "tracing").rglob("*.py"):
        for name in types(module):
            files[name].add(module.relative_to(ROOT).as_posix())

    assert {n: sorted(f) for n, f in files.items() if len(f) > 1 and not n.startswith("_")} == {}
