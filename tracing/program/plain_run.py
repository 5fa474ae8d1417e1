"""Run a case once, compiled, without recording: the program that a debugger starts."""

from __future__ import annotations

import torch

from tracing.model import Case
from tracing.program.backward import differentiate
from tracing.program.case import build
from tracing.program.device import Device


def execute(case: Case, device: Device, seed: int) -> None:
    """Build a case's workload, compile and run it, with its backward if it computes gradients.

    Caches are empty, so every kernel is compiled. Raises what the case raises.
    """
    with device.active():
        torch.manual_seed(seed)
        workload = build(case, device.type)
        compiled = torch.compile(workload.fn, **workload.compiling)
        returned = compiled(*workload.args, **workload.kwargs)
        if workload.backward:
            differentiate(returned)
