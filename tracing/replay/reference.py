"""The right results of a recorded launch: the interpreter executes its kernel's source on its inputs.

The interpreter shares no pass, no LLVM and no assembler with the compiled kernel, so its results are
independent.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch

from tracing.errors import Problem
from tracing.interpreter import outside_loads, rounded_otherwise
from tracing.replay.arguments import ReplayInputs
from tracing.replay.loaded_kernel import load_kernel
from tracing.store.recorded_launch import RecordedLaunch


def reference(recorded: RecordedLaunch, *, fill: int = 0, seed: int | None = None) -> dict[str, torch.Tensor]:
    """The written arguments of a launch after the interpreter executed it, on the CPU.

    fill -- each byte of memory whose contents before the launch were not kept, also outside of the arguments
    seed -- operations on floats are rounded as another implementation may round them, at random; None: they
            are not

    Cost: that of `tracing.interpreter.execute`, 0.5 ms and more a program of the grid.

    Raises Problem, with the reason, if the function cannot be loaded or interpreted.
    """
    launch, inputs = recorded.launch, ReplayInputs.of(recorded)
    tensors = inputs.tensors(inputs.memory("cpu", fill))
    rounding = nullcontext() if seed is None else rounded_otherwise(seed)
    try:
        with load_kernel(recorded.module) as kernel, rounding, outside_loads(fill):
            kernel.interpret(inputs.arguments(tensors), launch.grid)
    except Problem:
        raise
    except Exception as error:  # the kernel's own code runs here
        raise Problem(f"the interpreter failed with {type(error).__name__}: {error}") from error
    return {arg.name: tensors[arg.name] for arg in launch.args if arg.writes}
