"""Passes, patterns and reinplaced operators."""

from __future__ import annotations

import torch
from torch._inductor.fx_passes import joint_graph, reinplace

from tracing.program.compile_steps import CompileSteps
from tracing.upstream.inductor import graph_passes


def test_the_contract_holds_with_the_installed_versions() -> None:
    graph_passes.contract()


def test_a_pattern_that_is_left_out_is_not_replaced() -> None:
    def permuted_twice() -> torch.fx.GraphModule:
        graph = torch.fx.Graph()
        node = graph.placeholder("x")
        for _ in range(2):
            node = graph.call_function(torch.ops.aten.permute.default, (node, [1, 0]))
        graph.output(node)
        return torch.fx.GraphModule({}, graph)

    left = []
    for first in ({}, {graph_passes.PATTERNS: 0}):
        steps, module = CompileSteps(first), permuted_twice()
        with graph_passes.graph_changes_asked(steps):
            joint_graph.early_patterns.apply(module.graph)
        left.append(len(module.graph.nodes))
        assert [one.kind for one in steps.asked[graph_passes.PATTERNS]] == ["pointless_permute_pair"]

    assert left == [2, 4]


def test_an_operator_that_is_left_out_fails_its_check_for_reinplacing() -> None:
    target = torch.ops.aten.index_put.default
    graph = torch.fx.Graph()
    node = graph.call_function(target, tuple(map(graph.placeholder, ("into", "indices", "values"))))

    with graph_passes.graph_changes_asked(CompileSteps({graph_passes.REINPLACING: 1})):
        check = reinplace.inplaceable_ops[target].extra_check
        inside = [check(node), check(node)]

    assert inside == [True, False]
    assert reinplace.inplaceable_ops[target].extra_check(node)
