"""Loads a recorded kernel from the text of its module, and launches or interprets the kernel."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tracing import interpreter
from tracing.interpreter.call_arguments import bound, nested
from tracing.launch.launch_site import Grid
from tracing.program.case import import_file
from tracing.upstream.triton.jit import JITFunction

# tensors, numbers and constants, by parameter or member of a tuple
Arguments: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """A kernel, and the settings of its launch."""

    function: JITFunction[Any]
    constants: Mapping[str, object]  # tl.constexpr arguments and specialised values
    options: Mapping[str, Any]  # num_warps, ...
    fields: Mapping[str, Sequence[str]]  # of arguments that are named tuples

    def launch(self, arguments: Arguments, grid: Grid) -> None:
        """Launch the kernel on the GPU with Triton's own launcher; does not wait for the kernel.

        arguments -- the values of the parameters except the constants, by name; see `nested` for tuples
        """
        x, y, z = grid
        call = bound(self.function.fn, self._values(arguments))
        self.function[x, y, z](*call.args, **call.kwargs, **self.options)

    def interpret(self, arguments: Arguments, grid: Grid) -> None:
        """Execute one launch on CPU tensors, in place, by the interpreter; arguments as for `launch`."""
        interpreter.launch(self.function, self._values(arguments), self.constants, grid, self.options)

    def _values(self, arguments: Arguments) -> dict[str, object]:
        return nested({**arguments, **self.constants}, self.function.arg_names, self.fields)


@contextmanager
def load_kernel(module: str) -> Iterator[LoadedKernel]:
    """The kernel that the text of a module defines as KERNEL; its file must exist while Triton uses it."""
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(module)
        made = import_file(path)
        yield LoadedKernel(made.KERNEL, made.CONSTANTS, made.OPTIONS, getattr(made, "FIELDS", {}))
