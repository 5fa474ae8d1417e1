"""A case on one device from one seed: its initial state, its results, and the state that it changes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch

from tracing.model import Case, Workload
from tracing.program.backward import differentiate
from tracing.program.building import building
from tracing.program.case import build
from tracing.program.device import Device
from tracing.program.forks import forks_end_here
from tracing.program.state import differentiable, gradients_of, left_by, shared_storages, start_of, stepped
from tracing.program.structure import Facts, facts_of
from tracing.upstream.torch.compiled_function import is_compiled
from tracing.upstream.torch.dynamo import nothing_compiled


@dataclass(frozen=True, slots=True)
class Experiment:
    """A case whose inputs are equal each time it is run."""

    case: Case
    device: Device
    seed: int  # of torch's random generators
    mode: str = ""  # of torch.compile, instead of the workload's; empty: the workload's
    referee: bool = True  # results that differ from eager's are judged by exact arithmetic

    @forks_end_here()
    def workload(self) -> Workload:
        """The workload of the case, built anew."""
        torch.manual_seed(self.seed)
        with building():
            workload = build(self.case, self.device.type)
        return replace(workload, mode=self.mode, options=None) if self.mode else workload

    @forks_end_here()
    def start(self, workload: Workload) -> Facts:
        """The initial state for `results` of this workload."""
        torch.manual_seed(self.seed)
        return start_of(workload)

    @forks_end_here()
    def results(self, workload: Workload, compiler: Callable[[Any], Any] | None) -> Facts:
        """The results of a workload, like `results_of`."""
        return results_of(workload, compiler, self.seed)


def compiled(workload: Workload) -> Callable[..., Any]:
    """The function of a workload, compiled as it asks; as it is if the case has compiled it itself."""
    if not workload.compiling and is_compiled(workload.fn):
        return workload.fn
    return torch.compile(workload.fn, **workload.compiling)


def results_of(workload: Workload, compiler: Callable[..., Any] | None, seed: int) -> Facts:
    """Run a workload: its return value, aliases, gradients, parameters, buffers and optimizers' state.

    compiler -- torch.compile, which compiles as the workload asks; None: eager, where functions that the
                workload itself compiles run as they are written
    seed     -- of torch's random generators
    """
    torch.manual_seed(seed)
    with stepped() as optimizers, nullcontext() if compiler else nothing_compiled():
        if compiler is torch.compile:
            function = compiled(workload)
        else:
            function = compiler(workload.fn) if compiler else workload.fn
        returned = function(*workload.args, **workload.kwargs)
        given = facts_of(returned, "output")
        if workload.backward:
            differentiate(returned)
    about = differentiable(given) | shared_storages(given, workload) | gradients_of(given, workload)
    facts = given | about | left_by(workload, optimizers)
    return {name: one.detach() if isinstance(one, torch.Tensor) else one for name, one in facts.items()}
