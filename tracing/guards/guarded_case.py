"""Run a case, and record how Dynamo compiles its frames."""

from __future__ import annotations

import traceback

import torch

from tracing import store
from tracing.errors import message
from tracing.model import Outcome
from tracing.program.case import describe
from tracing.program.experiment import Experiment
from tracing.record.graphs.frame_compiles import frame_compiles_recorded


def record_guards(experiment: Experiment, writer: store.RunWriter, backend: str | None) -> Outcome:
    """Run a case once, compiled, with its backward if it computes gradients; launches are not recorded.

    backend -- of torch.compile; None: the case's own

    A case that raises leaves a readable run with status "failed".
    """
    with experiment.device.active():
        try:
            workload = experiment.workload()
            with frame_compiles_recorded(writer):
                experiment.results(workload.with_backend(backend) if backend else workload, torch.compile)
        except Exception as error:
            detail = describe(error, experiment.case.path)
            outcome = Outcome("failed", detail, traceback.format_exc(), message(error))
        else:
            outcome = Outcome("compiled", "compiles were recorded; launches and results were not")
    writer.append(outcome)
    return outcome
