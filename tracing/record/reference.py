"""What a recorded launch should have left: its kernel's source, executed by the interpreter on its inputs.

The interpreter shares no pass, no LLVM and no assembler with the compiled kernel, so what it computes is an
independent answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tracing.errors import Problem
from tracing.model import KernelLaunch
from tracing.record.remade import remade

_ELSE = "give `tracing bisect` a command that judges: `-- COMMAND`"


def interpreted(launch: KernelLaunch, module: str, given: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The written arguments of a launch after the interpreter executed it.

    module -- the recorded text of the kernel's module
    given  -- the values of its arguments but for its constants, on the CPU; they are not changed

    Cost: that of `tracing.interpreter.execute`, 0.5 ms and more a program of the grid.

    Raises Problem, with the reason, if the function cannot be made again or not be interpreted.
    """
    values = {
        name: _copy(value) if isinstance(value, torch.Tensor) else value for name, value in given.items()
    }
    try:
        with remade(module) as kernel:
            kernel.interpret(values, launch.grid)
    except Problem:
        raise
    except Exception as error:  # the kernel's own code runs here
        what = f"cannot be decided, because there is no reference for launch {launch.index}"
        why = f"the interpreter failed with {type(error).__name__}: {error}"
        raise Problem(f"{what}: {why}", _ELSE) from error
    return {arg.name: values[arg.name] for arg in launch.args if arg.writes}


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    # with the gaps between its elements: a kernel is given addresses
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).clone()
    return storage.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
