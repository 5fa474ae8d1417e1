"""`tracing compare` accuses the planted fault of 10 random programs; `make soak` tries 2,000."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from generated.check import check
from generated.faults import Planted, planted
from generated.programs import case, programs
from generated.witness import traced
from hypothesis import HealthCheck, Phase, given, settings

from tracing.virtual_gpu import virtual_gpu


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(program=programs())
def test_the_witness_agrees_with_the_virtual_gpu(program: object) -> None:
    torch.manual_seed(0)
    with virtual_gpu():
        workload = case.workload(program, "cpu")
        left = workload.fn(*workload.args)

    for tensor, read in zip(left, traced(program).results, strict=True):
        np.testing.assert_allclose(tensor.numpy(), read.values, rtol=1e-4, atol=1e-4, equal_nan=True)


@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # `make soak` shrinks, which takes minutes
)
@given(plan=planted())
def test_a_planted_fault_is_accused_and_nothing_else(plan: Planted, folder: Path) -> None:
    check(plan, folder)
