"""A recorded kernel as a function again, from the text of its module, and one launch of it without a GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from triton.runtime.jit import JITFunction

from tracing.case import import_file
from tracing.interpreter import execute


@dataclass(frozen=True, slots=True)
class Remade:
    """A kernel, and how it was launched."""

    function: JITFunction[Any]
    constants: Mapping[str, Any]
    options: Mapping[str, Any]  # num_warps, ...

    def interpret(self, given: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
        """Execute one launch on CPU tensors, in place.

        given -- the values of the arguments but for the constants

        Cost: that of `tracing.interpreter.execute`, 0.5 ms and more a program of the grid. Raises what that
        raises, and KeyError for an argument of which nothing is known.
        """
        names = list(self.function.arg_names)
        described = SimpleNamespace(
            fn=self.function,
            constants={(names.index(name),): value for name, value in self.constants.items()},
            signature={name: _type(value) for name, value in given.items() if name not in self.constants},
        )
        known = {**given, **self.constants}
        execute(described, [known[name] for name in names], grid)


@contextmanager
def remade(module: str) -> Iterator[Remade]:
    """The kernel that the text of a module defines as KERNEL; Triton reads its source while it is used."""
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(module)
        made = import_file(path)
        yield Remade(made.KERNEL, made.CONSTANTS, made.OPTIONS)


def _type(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "*"
    if isinstance(value, bool):
        return "u1"
    if isinstance(value, int):  # as Triton's own specialisation
        return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    return "fp32"
