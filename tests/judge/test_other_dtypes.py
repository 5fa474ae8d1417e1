"""A launch that is off because it was given a tensor of another dtype than its kernel was compiled for."""

from __future__ import annotations

from pathlib import Path

import torch
import torch._inductor.config as inductor
from judged_programs import values
from planted_kernels import Program, recorded

from tracing.cli.narrow.judge import judgement_of
from tracing.program.device import Device
from tracing.report.judge.judgement import judgement_text


@torch.library.custom_op("other_dtypes::widened", mutates_args=())
def widened(x: torch.Tensor) -> torch.Tensor:
    return x.double()


@widened.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def doubled(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    wide = widened(x)
    return wide * 2, wide


def test_the_dtype_that_a_wrong_launch_was_compiled_for_is_named(device: Device, tmp_path: Path) -> None:
    with inductor.patch(size_asserts=False):  # torch 2.15 asserts dtypes, too
        run = recorded(Program(doubled, lambda: [values(8, 4)]), tmp_path, device)

    said = judgement_of(run, run).judgement

    text = "\n".join(judgement_text(said, ()))
    assert "is off" in text
    assert "cause     the kernel was compiled for in_ptr0 of f32, and it is launched with float64" in text
