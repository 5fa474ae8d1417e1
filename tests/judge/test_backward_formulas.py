"""Backward formulas of the program: eager computes with the same ones, so nothing checks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from judged_programs import values
from planted_kernels import Program, judgement, recorded

from tracing.program.device import Device
from tracing.report.judge.judgement import judgement_text


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return gradients[0] * 2 * x


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0]


@torch.library.custom_op("tests_formulas::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x * x * x


def cube_backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
    return gradient * 2 * ctx.saved_tensors[0]


cube.register_fake(torch.empty_like)
cube.register_autograd(
    cube_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
)


def cubed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = Cube.apply(x)
    return made.sin() * y


def rounded(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = Rounded.apply(x)  # a straight-through estimator computes nothing
    return made.sin() * y


def by_operator(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return cube(x).sin() * y


def in_checkpoint(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = torch.utils.checkpoint.checkpoint(cubed, x, y, use_reentrant=False)
    return made


def into_memory(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = y * 2
    z[:] = cubed(x, y)
    return z


def detached(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return cubed(x, y).detach() * y


def of_data(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return cube(y.detach()) * x


def inputs() -> Sequence[torch.Tensor]:
    return [values(6, 4, g=0).requires_grad_(), values(6, 4, g=1).requires_grad_()]


def line(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, one in enumerate(lines, 1) if text in one)


FORMULA = f"a torch.autograd.Function (test_backward_formulas.py:{line('return gradients[0] * 2 * x')})"
IDENTITY = f"a torch.autograd.Function (test_backward_formulas.py:{line('= Rounded.apply')})"
OPERATOR = f"tests_formulas::cube (test_backward_formulas.py:{line('def cube_backward')})"


@pytest.mark.parametrize(
    ("function", "formulas"),
    [
        (cubed, [FORMULA]), (rounded, [IDENTITY]), (by_operator, [OPERATOR]), (in_checkpoint, [FORMULA]),
        (into_memory, [FORMULA]), (detached, []), (of_data, []),
    ],
)  # fmt: skip
def test_formulas_that_gave_gradients_are_named(
    function: Callable[..., Any], formulas: Sequence[str], device: Device, tmp_path: Path
) -> None:
    said = judgement(recorded(Program(function, inputs, backward=True, calls=2), tmp_path, device))

    assert said.findings == () and list(said.formulas) == formulas
    text = [one for one in judgement_text(said, ()) if one.startswith("nothing checks")]
    assert text == [f"nothing checks the backward of {one}" for one in formulas]


def test_a_formula_whose_backward_did_not_run_is_not_named(device: Device, tmp_path: Path) -> None:
    said = judgement(recorded(Program(cubed, inputs), tmp_path, device))

    assert said.formulas == ()
