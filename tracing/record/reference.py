"""What a recorded launch should have left: its kernel's source, executed by the interpreter on its inputs.

The interpreter shares no pass, no LLVM and no assembler with the compiled kernel, so what it computes is an
independent answer. The function is made anew from the recorded source: in its own file's module if that file
is still there, else, for a kernel that Inductor generated, behind the imports that Inductor writes.
"""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from triton.runtime.jit import JITFunction

from tracing.case import import_file
from tracing.errors import Problem
from tracing.interpreter import execute
from tracing.model import KernelLaunch

_ELSE = "give `tracing bisect` a command that judges: `-- COMMAND`"
_INDUCTOR = """\
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math

@triton.jit
"""


def interpreted(launch: KernelLaunch, source: str, given: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The written arguments of a launch after the interpreter executed it.

    source -- the kernel's recorded Python source
    given  -- the values of its arguments but for its constants, on the CPU; they are not changed

    Cost: that of `tracing.interpreter.execute`, 0.5 ms and more a program of the grid.

    Raises Problem, with the reason, if the function cannot be made again or not be interpreted.
    """
    values = {
        name: _copy(value) if isinstance(value, torch.Tensor) else value for name, value in given.items()
    }
    constants = {name: _constant(launch, name, text) for name, text in launch.kernel.constants.items()}
    with _function(launch, source) as function:
        _execute(launch, function, values, constants)
    return {arg.name: values[arg.name] for arg in launch.args if arg.writes}


def _execute(
    launch: KernelLaunch, function: JITFunction[Any], values: Mapping[str, Any], constants: Mapping[str, Any]
) -> None:
    names = list(function.arg_names)
    if missing := [name for name in names if name not in values and name not in constants]:
        raise _undecided(launch, f"nothing was recorded of its argument {missing[0]}")
    described = SimpleNamespace(
        fn=function,
        constants={(names.index(name),): value for name, value in constants.items() if name in names},
        signature={name: _type(value) for name, value in values.items() if name not in constants},
    )
    try:
        execute(described, [constants.get(name, values.get(name)) for name in names], launch.grid)
    except Problem:
        raise
    except Exception as error:  # the kernel's own code runs here
        raise _undecided(launch, f"the interpreter failed with {type(error).__name__}: {error}") from error


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    # with the gaps between its elements: a kernel is given addresses
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).clone()
    return storage.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


@contextmanager
def _function(launch: KernelLaunch, source: str) -> Iterator[JITFunction[Any]]:
    # the file must be there while the function is used: the interpreter reads its source from it
    file = Path((launch.kernel.file or "").rpartition(":")[0])
    name = launch.kernel_name
    if file.is_file():
        found = getattr(import_file(file), name, None)
        while found is not None and not isinstance(found, JITFunction):
            found = getattr(found, "fn", None)  # an autotuner, heuristics
        if found is None or "".join(found.raw_src) != source:
            raise _undecided(launch, f"{file} has no kernel {name} with the recorded source any more")
        yield found
        return
    body = re.search(r"^def .*", source, re.MULTILINE | re.DOTALL)
    if not name.startswith("triton_") or body is None:
        raise _undecided(launch, f"{file} with its source is gone")
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(_INDUCTOR + body[0])
        made = getattr(import_file(path), name)
        assert isinstance(made, JITFunction)
        yield made


def _constant(launch: KernelLaunch, name: str, text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise _undecided(launch, f"its constant {name} was recorded as {text}, which is no literal") from None


def _type(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "*"
    if isinstance(value, bool):
        return "u1"
    if isinstance(value, int):  # as Triton's own specialisation
        return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    return "fp32"


def _undecided(launch: KernelLaunch, why: str) -> Problem:
    what = f"cannot be decided, because there is no reference for launch {launch.index}: {why}"
    return Problem(what, _ELSE)
