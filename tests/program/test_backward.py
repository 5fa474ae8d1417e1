"""Gradients of what a workload returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tracing.program.backward import differentiate


@dataclass
class Returned:
    spectrum: torch.Tensor
    losses: dict[str, list[torch.Tensor]]
    steps: int = 3


def test_tensors_in_dataclasses_and_complex_ones_are_differentiated() -> None:
    x, y = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
    spectrum = torch.complex(2 * x, 3 * x)

    differentiate((Returned(spectrum.conj(), {"all": [5 * y, torch.ones(2)]}), None))

    assert x.grad is not None and y.grad is not None
    assert x.grad.tolist() == [2.0 - 3.0] * 3 and y.grad.tolist() == [5.0] * 2


def test_nothing_to_differentiate_is_no_error() -> None:
    differentiate({"count": 1, "values": torch.ones(2)})
