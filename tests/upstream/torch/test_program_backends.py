"""Backends of torch.compile that a program brings."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

from tracing.program.compile_steps import CompileSteps
from tracing.upstream.torch import program_backends as backends
from tracing.upstream.torch.dynamo import forget_compiled


def mine(graph: Any, inputs: Any) -> Any:
    return graph.forward


class Mine:
    def __call__(self, graph: Any, inputs: Any) -> Any:
        return graph.forward


def test_the_contract_holds_with_the_installed_versions() -> None:
    backends.contract()


@pytest.mark.parametrize(
    ("backend", "label"),
    [
        (mine, f"mine (test_program_backends.py:{mine.__code__.co_firstlineno})"),
        (functools.partial(mine), f"mine (test_program_backends.py:{mine.__code__.co_firstlineno})"),
        (Mine(), f"Mine (test_program_backends.py:{Mine.__call__.__code__.co_firstlineno})"),
        ("eager", ""),
        ("inductor", ""),
    ],
)
def test_backends_of_torch_are_no_steps_and_others_are_named(backend: Any, label: str) -> None:
    steps = CompileSteps()
    forget_compiled()
    with backends.backends_asked(steps):
        torch.compile(lambda x: x * 2, backend=backend)(torch.ones(2))
    forget_compiled()

    assert [one.label for one in steps.asked[backends.BACKENDS]] == ([label] if label else [])
