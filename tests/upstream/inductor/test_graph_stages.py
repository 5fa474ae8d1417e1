"""Graphs that are compiled up to a stage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tracing.analyze.bisect_case import stages
from tracing.program.compile_steps import CompileSteps
from tracing.upstream.inductor import graph_stages
from tracing.upstream.torch.dynamo import forget_compiled


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    forget_compiled()
    yield
    forget_compiled()


def test_the_contract_holds_with_the_installed_versions() -> None:
    graph_stages.contract()


def test_the_search_knows_the_stages_by_the_same_names() -> None:
    here = [
        graph_stages.EAGER, graph_stages.AOT, graph_stages.DECOMPOSED, graph_stages.JOINED,
        graph_stages.POST_GRAD_GRAPH, graph_stages.INDUCTOR,
    ]  # fmt: skip

    assert [one.name for one in stages.STAGES] == [stages.UNCOMPILED, *here]


def test_forward_and_backward_are_graphs_of_their_own_after_the_joint_graph() -> None:
    def run(stage: str) -> list[str]:
        steps = CompileSteps()
        x = torch.rand(3, requires_grad=True)
        with graph_stages.graphs_compiled(stage, steps):
            forget_compiled()
            torch.compile(lambda one: one.sin() * 2)(x).sum().backward()
        assert torch.equal(x.grad, 2 * x.detach().cos())
        return [one.label for one in steps.asked[graph_stages.GRAPHS]]

    assert run(graph_stages.AOT) == ["graph 0"]
    assert run(graph_stages.POST_GRAD_GRAPH) == ["graph 0 forward", "graph 0 backward"]
