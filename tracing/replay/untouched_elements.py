"""The elements of its arguments that a launch does not write, whatever memory held that was not kept.

Triton's interpreter executes the launch and records each access. If the launch reads kept contents only, the
addresses that it writes depend on nothing else, so an element that it left unwritten is never written.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from tracing.interpreter.gates import watched
from tracing.launch.memory.accesses import Accesses
from tracing.model import KernelLaunch
from tracing.replay.arguments import Memory, ReplayInputs
from tracing.replay.loaded_kernel import LoadedKernel

_PROGRAMS = 10_000  # of a launch on a GPU: more take the interpreter longer than 5 s


def untouched_elements(
    launch: KernelLaunch, inputs: ReplayInputs, kernel: LoadedKernel
) -> dict[str, torch.Tensor]:
    """By argument, [elements] bool on the CPU, in logical order: True if the launch does not write it.

    Empty if that is not known: the launch reads memory whose content was not kept, its programs race, or the
    interpreter cannot execute it. Cost: as `tracing.interpreter.execute`, once.
    """
    if torch.cuda.is_available() and math.prod(launch.grid) > _PROGRAMS:
        return {}
    memory = inputs.memory("cpu")
    tensors = inputs.tensors(memory)
    accesses = Accesses(launch.kernel_name, tensors)
    accesses.fatal = True
    try:
        with watched([accesses]):
            kernel.interpret(inputs.arguments(tensors), launch.grid)
    except Exception:  # the kernel's own code runs here
        return {}
    strange = accesses.outside or accesses.conflict or accesses.undecided or accesses.interrupted
    if strange or _reads_other_memory(accesses, inputs, memory):
        return {}
    known = {name: accesses.of(name) for name in tensors}
    return {name: torch.from_numpy(~one[1].written(one[0]).any(axis=1)) for name, one in known.items() if one}


def _reads_other_memory(accesses: Accesses, inputs: ReplayInputs, memory: Memory) -> bool:
    # bytes whose content was not kept are those that depend on what fills the rest of the memory
    fills = inputs.memory("cpu", 0x00), inputs.memory("cpu", 0xFF)
    for storage, content in memory.items():
        start, stop = content.data_ptr(), content.data_ptr() + content.numel()
        read = [one.read_bytes(start, stop) for one in accesses.blocks if one.start <= start < one.stop]
        filled = (fills[0][storage] != fills[1][storage]).numpy()
        if any(bool(np.any(one & filled)) for one in read):
            return True
    return False
