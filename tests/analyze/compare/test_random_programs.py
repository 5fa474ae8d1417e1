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
from hypothesis import HealthCheck, Phase, example, given, settings

from tracing.virtual_gpu import virtual_gpu


def swapped() -> Planted:
    """The same kernel on two slices of one storage, in another order."""
    steps = [case.Launch("bump", (case.Region(buffer, 16, 32),), n=32) for buffer in (0, 2)]
    a, b = (case.Program(tuple(order), pool=True) for order in (steps, steps[::-1]))
    return Planted("swap", a, b, (0,), ("bump", "bump"), moved={(0,): (1,), (1,): (0,)})


def covered() -> Planted:
    """In each iteration, only one program has a launch that writes what two wrote in the other one."""
    writes = case.Launch("add", (case.Region(3, 32, 32), case.Region(0, 0, 32), case.Region(0, 0, 32)), n=32)
    reads = case.Launch("add", (case.Region(0, 16, 16), case.Region(3, 48, 16), case.Region(1, 48, 16)), n=16)
    part = case.Launch("scale", (case.Region(2, 16, 32), case.Region(0, 0, 32)), n=26)
    host = case.Host("numpy", case.Region(0), at=1, value=3.25)
    a, b = (
        case.Program((reads, case.Loop(2, (case.Thread((first, reads)), part, case.Thread((host,))))))
        for first in (writes, case.Loop(0, ()))
    )
    return Planted("launch", a, b, (1, 0, 0), ("add",), "a")


def in_threads() -> Planted:
    """Short threads repeat each other; only one program has a launch in every second one."""
    scale = case.Launch("scale", (case.Region(1, 16, 16), case.Region(2, 48, 16)), n=10)
    add = case.Launch("add", (case.Region(1, 48, 16), case.Region(1, 48, 16), case.Region(3, 48, 16)), n=8)
    more, bump = (case.Launch("bump", (case.Region(1, 16, n),), -0.75, n=n) for n in (32, 16))
    a, b = (
        case.Program((case.Loop(2, (case.Thread((scale, add, last)), case.Thread((scale, add)), bump)),))
        for last in (case.Loop(0, ()), more)
    )
    return Planted("launch", a, b, (0, 0, 2), ("bump",), "b")


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
@example(plan=swapped())
@example(plan=covered())
@example(plan=in_threads())
@given(plan=planted())
def test_a_planted_fault_is_accused_and_nothing_else(plan: Planted, folder: Path) -> None:
    check(plan, folder)
