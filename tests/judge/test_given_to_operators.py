"""A kernel is judged by what it computes for an operator of the program, which has no reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from judged_programs import values
from planted_kernels import Program, judgement, recorded

from tracing.judge.fx import operators
from tracing.program.device import Device


@torch.library.custom_op("given::tripled", mutates_args=())
def tripled(x: torch.Tensor) -> torch.Tensor:
    """An operator with one tensor."""
    return x * 3


@torch.library.custom_op("given::added", mutates_args=())
def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """An operator with two tensors."""
    return x + y


@tripled.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@added.register_fake
def _(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def with_one(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return tripled(x.sin()), x > 0


def with_two(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return added(x.sin(), x.exp().t().half().float().t()), x > 0


def with_cos(_kernel: str, source: str) -> str:
    return source.replace("tl_math.sin(", "tl_math.cos(")


@pytest.mark.parametrize("function", [with_one, with_two])
def test_a_right_kernel_that_computes_for_an_operator_is_right(
    function: Callable[..., object], device: Device, tmp_path: Path
) -> None:
    (launch,) = judgement(recorded(Program(function, lambda: (values(8, 4),)), tmp_path, device)).launches

    assert (launch.verdict, launch.unjudged) == ("right", ())


def test_a_kernel_that_computes_the_only_tensor_of_an_operator_wrongly_is_off(
    device: Device, tmp_path: Path
) -> None:
    program = Program(with_one, lambda: (values(8, 4),))
    (launch,) = judgement(recorded(program, tmp_path, device, with_cos)).launches

    assert (launch.verdict, [one.node for one in launch.wrong]) == ("off", ["sin"])


def test_a_kernel_is_right_in_part_if_only_an_unknown_operator_reads_what_is_none_of_its_tensors(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators, "_REFUSED", ("given::added",))  # as in a process that lacks it
    program = Program(with_two, lambda: (values(8, 4),))
    (launch,) = judgement(recorded(program, tmp_path, device, with_cos)).launches

    assert launch.partly and len(launch.unjudged) == 1
    assert launch.why.startswith("it is only read by given::added, which")
