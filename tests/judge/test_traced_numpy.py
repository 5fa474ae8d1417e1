"""Functions, methods and operators of numpy in compiled code are judged by the graph that Dynamo traced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch._inductor.config as inductor
from judged_programs import values
from planted_kernels import Program, judgement, recorded

from tracing.analyze.judge.findings import TracedOff
from tracing.program.device import Device

aten = torch.ops.aten


def inputs() -> list[torch.Tensor]:
    return [values(6, 4, g=0), values(6, 4, g=1)]


def changed(x: Any) -> Any:
    own = x.copy()
    own += 1
    own[1:3, 2] *= 2
    own.sort()
    return own


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "functions": lambda x, y: np.where(x > 0, np.power(np.abs(x), 1.5), y) + np.linalg.norm(y),
    "methods": lambda x, y: x.astype(np.float64).sum(axis=1).reshape(2, 3).T,
    "operators": lambda x, y: np.float32(3.7) * x @ y.T + np.arange(6) // 4,
    "indices": lambda x, y: x[1:, ::2] + y[:-1, 1::2][..., None, :].sum(-2),
    "in place": lambda x, y: changed(x) + np.sort(y, axis=0),
}


def of_tensors(function: Callable[[Any, Any], Any]) -> Callable[..., torch.Tensor]:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(function(x.cpu().numpy(), y.cpu().numpy())).to(x.device).sin()

    return program


@pytest.mark.parametrize("name", PROGRAMS)
def test_right_results_are_right(name: str, device: Device, tmp_path: Path) -> None:
    said = judgement(recorded(Program(of_tensors(PROGRAMS[name]), inputs), tmp_path, device))

    assert (said.status, said.findings) == (0, ())
    assert not [one for one in said.not_covered if "by Dynamo's graph" in one]


def with_cos(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.sin.default):
        node.target = aten.cos.default


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_wrong_result_is_found(name: str, device: Device, tmp_path: Path) -> None:
    with inductor.patch(joint_custom_post_pass=with_cos, force_disable_caches=True):
        said = judgement(recorded(Program(of_tensors(PROGRAMS[name]), inputs), tmp_path, device))

    assert [type(one) for one in said.findings] == [TracedOff]
