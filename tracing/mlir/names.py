"""Rename values so that names are unique in a module; MLIR's printer reuses names between regions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from tracing.mlir.generic import Block, Module, Operation


def make_unique(module: Module) -> None:
    """Rename every value, and every block, so that no two of the module have one name."""
    _Names().operation(module.operation, {}, {})


class _Names:
    def __init__(self) -> None:
        self._values = count()
        self._blocks = count()

    def operation(self, one: Operation, values: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Rename one operation and everything inside of it; `values` contains its results already."""
        one.operands = [_renamed(name, values) for name in one.operands]
        one.results = [_renamed(name, values) for name in one.results]
        one.successors = [labels.get(name, name) for name in one.successors]
        for region in one.regions:
            self._region(region, dict(values))

    def _region(self, region: list[Block], values: dict[str, str]) -> None:
        # a block may use a value that a later block of the text defines
        for block in region:
            for name in (*_defined(block), *(name for name, _ in block.arguments)):
                values[name] = f"%v{next(self._values)}"
        labels = {block.label: f"^b{next(self._blocks)}" for block in region if block.label}
        for block in region:
            block.label = labels.get(block.label, "")
            block.arguments = [(values[name], kind) for name, kind in block.arguments]
            for one in block.operations:
                self.operation(one, values, labels)


def _defined(block: Block) -> Iterator[str]:
    for one in block.operations:
        yield from dict.fromkeys(name.partition("#")[0] for name in one.results)


def _renamed(name: str, values: Mapping[str, str]) -> str:
    base, hash, number = name.partition("#")
    return f"{values.get(base, base)}{hash}{number}"
