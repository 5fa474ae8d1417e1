"""The right results of a recorded launch: the interpreter executes its kernel's source on its inputs.

The interpreter shares no pass, no LLVM and no assembler with the compiled kernel, so its results are
independent.
"""

from __future__ import annotations

import torch

from tracing.errors import Problem
from tracing.replay.arguments import ReplayInputs
from tracing.replay.loaded_kernel import load_kernel
from tracing.store.recorded_launch import RecordedLaunch

_ELSE = "give `tracing bisect` a command that judges: `-- COMMAND`"


def reference(recorded: RecordedLaunch) -> dict[str, torch.Tensor]:
    """The written arguments of a launch after the interpreter executed it, on the CPU.

    Cost: that of `tracing.interpreter.execute`, 0.5 ms and more a program of the grid.

    Raises Problem, with the reason, if the function cannot be loaded or interpreted.
    """
    launch, inputs = recorded.launch, ReplayInputs.of(recorded)
    tensors = inputs.tensors(inputs.memory("cpu"))
    what = f"cannot be decided, because there is no reference for launch {launch.index}"
    try:
        with load_kernel(recorded.module) as kernel:
            kernel.interpret(inputs.arguments(tensors), launch.grid)
    except Problem as error:
        remedy = f"{error.remedy}; or {_ELSE}" if error.remedy else _ELSE
        raise Problem(f"{what}: {error.problem}", remedy) from None
    except Exception as error:  # the kernel's own code runs here
        why = f"the interpreter failed with {type(error).__name__}: {error}"
        raise Problem(f"{what}: {why}", _ELSE) from error
    return {arg.name: tensors[arg.name] for arg in launch.args if arg.writes}
