"""Run a case or a script once without recording: the program that a debugger starts."""

from __future__ import annotations

import torch

from tracing.model import Case
from tracing.program.backward import differentiate
from tracing.program.case import build
from tracing.program.device import Device
from tracing.program.experiment import compiled
from tracing.program.user_program import UserProgram


def execute(case: Case, device: Device, seed: int) -> None:
    """Build a case's workload, compile and run it, with its backward if it computes gradients.

    Caches are empty, so every kernel is compiled. Raises what the case raises.
    """
    with device.active():
        torch.manual_seed(seed)
        workload = build(case, device.type)
        function = compiled(workload)
        returned = function(*workload.args, **workload.kwargs)
        if workload.backward:
            differentiate(returned)


def execute_program(program: UserProgram, device: Device) -> None:
    """Run a script as `python` does, on a virtual GPU if there is no GPU. Raises what the script raises.

    Caches are empty, so every kernel is compiled.
    """
    with device.active():
        program.execute()
