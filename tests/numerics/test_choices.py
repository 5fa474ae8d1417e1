"""Gradients that jump at a threshold: next to it, rounding may give either."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from tracing.numerics.reference import SAMPLES, Reference

ULP = 2.0**-21  # of float32, from 4 to 8


def spread(function: Callable[[torch.Tensor], torch.Tensor], numbers: list[float]) -> torch.Tensor:
    """[*] of the gradients for some numbers, after three roundings each."""

    def run() -> dict[str, torch.Tensor]:
        x = torch.tensor(numbers, requires_grad=True)
        (gradient,) = torch.autograd.grad(function(x / 7 / 5 * 35).sum(), x)
        return {"gradient": gradient}

    return Reference(run).expected(SAMPLES)["gradient"].spread


@pytest.mark.parametrize(
    ("function", "threshold"),
    [
        (F.relu6, 6.0),
        (lambda x: F.hardtanh(x, -5.0, 5.0), 5.0),
        (lambda x: F.hardsigmoid(x - 2), 5.0),
        (lambda x: F.hardswish(x - 2), 5.0),
        (lambda x: F.threshold(x, 5.0, 0.0), 5.0),
        (lambda x: F.softshrink(x, 5.0), 5.0),
        (lambda x: F.hardshrink(x, 5.0), 5.0),
        (lambda x: F.leaky_relu(x - 5, 0.1), 5.0),
        (lambda x: F.elu(x - 5, 0.5), 5.0),
        (lambda x: F.prelu(x - 5, torch.tensor([0.1])), 5.0),
        (lambda x: (x - 5).abs(), 5.0),
        (lambda x: x.clamp(-5.0, 5.0), 5.0),
        (lambda x: torch.where(x > 5, x, 0.5 * x), 5.0),
    ],
)
def test_a_gradient_next_to_a_jump_may_be_on_either_side(
    function: Callable[[torch.Tensor], torch.Tensor], threshold: float
) -> None:
    # rounding moves these numbers by up to 3 units in the last place
    next_to, far = spread(function, [threshold + 4 * ULP, threshold - 0.01])

    assert next_to > 0.05 and far < 1e-5


def test_numbers_that_are_not_rounded_are_on_one_side() -> None:
    def run() -> dict[str, torch.Tensor]:
        x = torch.tensor([6.0, 6 + ULP, 6 - ULP], requires_grad=True)
        (gradient,) = torch.autograd.grad(F.relu6(x).sum(), x)
        return {"gradient": gradient}

    assert not Reference(run).expected(SAMPLES)["gradient"].spread.any()
