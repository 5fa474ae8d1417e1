"""A recorded kernel as a function, loaded from the text of its module, and one launch of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tracing import interpreter
from tracing.program.case import import_file
from tracing.upstream.jit import JITFunction

Grid: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """A kernel, and how it was launched."""

    function: JITFunction[Any]
    constants: Mapping[str, Any]
    options: Mapping[str, Any]  # num_warps, ...

    def launch(self, arguments: Mapping[str, Any], grid: Grid) -> None:
        """Launch it on the GPU by Triton's own launcher; waits for nothing.

        arguments -- the values of the parameters except the constants, by name; of tuples as for `nested`
        """
        x, y, z = grid
        self.function[x, y, z](**nested({**arguments, **self.constants}), **self.options)

    def interpret(self, arguments: Mapping[str, Any], grid: Grid) -> None:
        """Execute one launch on CPU tensors, in place; as `launch`, and as `tracing.interpreter.launch`."""
        interpreter.launch(self.function, nested({**arguments, **self.constants}), self.constants, grid)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with tuples in the place of their members: `t.0` and `t.1.0` make `t`."""
    made = {name: value for name, value in values.items() if "." not in name}
    members: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        root, _, rest = name.partition(".")
        if root not in made:
            members.setdefault(root, {})[rest] = value
    for root, flat in members.items():
        inner = nested(flat)
        made[root] = tuple(inner[str(i)] for i in range(len(inner)))
    return made


@contextmanager
def load_kernel(module: str) -> Iterator[LoadedKernel]:
    """The kernel that the text of a module defines as KERNEL; Triton reads its source while it is used."""
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(module)
        made = import_file(path)
        yield LoadedKernel(made.KERNEL, made.CONSTANTS, made.OPTIONS)
