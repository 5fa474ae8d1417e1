"""What Inductor decides after lowering."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from torch._inductor.scheduler import Scheduler

from tracing.program.compile_steps import CompileSteps
from tracing.upstream.inductor import scheduling


def test_the_contract_holds_with_the_installed_versions() -> None:
    scheduling.contract()


def node(*names: str) -> Any:
    return SimpleNamespace(get_operation_names=lambda: set(names))


@pytest.mark.parametrize(
    ("steps", "fused"),
    [
        (CompileSteps(), [True, True, True]),
        (CompileSteps(first={scheduling.FUSION: 0}), [False, False, False]),
        (CompileSteps(without={scheduling.FUSION: ["op0 + op2"]}), [True, False, True]),
        (CompileSteps(these={scheduling.FUSION: ["op0 + op2"]}), [False, True, False]),
    ],
)
def test_two_nodes_are_not_fused_if_that_would_bring_operations_together_that_are_left_out(
    monkeypatch: pytest.MonkeyPatch, steps: CompileSteps, fused: list[bool]
) -> None:
    monkeypatch.setattr(Scheduler, "can_fuse", lambda *args: True)
    pairs = [("op0", "op1"), ("op2", "op0"), ("op1", "op2")]

    with scheduling.scheduling_asked(steps):
        answers = [Scheduler.can_fuse(None, node(a), node(b)) for a, b in pairs]

    assert answers == fused
