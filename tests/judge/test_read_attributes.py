"""Tensors that Dynamo's graph reads as attributes, as an optimizer's, are inputs of its calls."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch._inductor.config as inductor
from judged_programs import values
from planted_kernels import Program, judgement, recorded
from torch._inductor.decomposition import select_decomp_table

from tracing.analyze.judge.findings import TracedOff
from tracing.analyze.judge.judgement import RunJudgement
from tracing.program.device import Device

aten = torch.ops.aten


def judged(folder: Path, device: Device) -> RunJudgement:
    parameter = torch.nn.Parameter(values(80, 60))  # of too many elements for a constant of a graph
    parameter.grad = values(80, 60, g=1)
    step = torch.optim.Adam([parameter], lr=0.1).step
    with inductor.patch(force_disable_caches=True):
        return judgement(recorded(Program(step, list, calls=2), folder, device))


def test_the_steps_of_a_compiled_optimizer_are_right(device: Device, tmp_path: Path) -> None:
    said = judged(tmp_path, device)

    assert not said.findings and not said.not_covered
    assert {one.verdict for one in said.launches} == {"right"}


def test_a_parameter_that_a_compiled_optimizer_makes_wrong_is_off(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lerp = aten.lerp.Scalar
    monkeypatch.setitem(select_decomp_table(), lerp, lambda x, y, weight: x + 1.1 * weight * (y - x))

    said = judged(tmp_path, device)

    off = [one for one in said.findings if isinstance(one, TracedOff)]
    assert off and len(off) == len(said.findings) and "afterwards" in off[0].wrong.name


def test_a_static_tensor_that_changes_between_two_calls_is_no_constant(
    device: Device, tmp_path: Path
) -> None:
    scale = values(4)
    torch._dynamo.mark_static_address(scale, guard=True)

    def inputs() -> list[torch.Tensor]:
        scale.add_(1)
        return [values(6, 4)]

    said = judgement(recorded(Program(lambda x: x * scale, inputs, calls=2), tmp_path, device))

    assert not said.findings and not said.not_covered
    assert [one.verdict for one in said.launches] == ["right", "right"]
