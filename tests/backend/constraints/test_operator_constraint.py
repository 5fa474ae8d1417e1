"""Operators by all their names: of Dynamo, ATen, prims and modules."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from generated.aten_graphs import aten_graph, aten_graphs, node
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from tracing.backend.constraints import UnsupportedOpsConstraint


def refused(graph: torch.fx.Graph, *names: Any) -> list[str]:
    """The operators of a graph that are refused."""
    constraint = UnsupportedOpsConstraint(names)
    return [str(one.target) for one in graph.nodes if constraint.check(one)]


def matrix() -> torch.Tensor:
    return torch.eye(4) + 1


LU = (
    "torch.linalg.lu", "linalg.lu", "linalg_lu", "aten.linalg_lu", "aten::linalg_lu",
    "aten.linalg_lu.default",
    "torch.ops.aten.linalg_lu", torch.linalg.lu, torch.ops.aten.linalg_lu, torch.ops.aten.linalg_lu.default,
)  # fmt: skip
CONV2D = (
    "nn.Conv2d", "torch.nn.Conv2d", nn.Conv2d, "conv2d", "F.conv2d", F.conv2d, "aten.conv2d",
    "aten.convolution",
)  # fmt: skip


def test_lu_is_caught_however_it_is_named() -> None:
    graph = aten_graph(lambda x: torch.linalg.lu(x)[1] + 1, matrix())

    assert [refused(graph, name) for name in LU] == [["aten.linalg_lu.default"]] * len(LU)


def test_a_convolution_of_a_module_is_caught_however_it_is_named() -> None:
    module = nn.Sequential(nn.Conv2d(2, 3, 1), nn.ReLU(), nn.Conv2d(3, 2, 1)).requires_grad_(False)
    graph = aten_graph(module, torch.ones(1, 2, 4, 4))

    assert [refused(graph, name) for name in CONV2D] == [["aten.convolution.default"] * 2] * len(CONV2D)


def test_a_module_that_is_compiled_by_itself_has_no_line_and_is_named_instead() -> None:
    nested = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(4, 4)))
    graphs = aten_graphs(nested, torch.ones(2, 4, requires_grad=True))
    constraint = UnsupportedOpsConstraint(["mm", "addmm"])

    for graph in (graphs["forward"].graph, graphs["backward"].graph):
        violations = [one for one in map(constraint.check, graph.nodes) if one]
        assert {(one.python, one.code) for one in violations} == {("", "1.0: Linear")}


def test_another_convolution_is_not_caught() -> None:
    graph = aten_graph(nn.Conv1d(2, 3, 1).requires_grad_(False), torch.ones(1, 2, 4))

    assert refused(graph, "nn.Conv2d", "conv2d") == []


ADD = ("torch.add", "add", "aten.add", "prims.add", "aten.add_", "operator.add", "Tensor.add")


def test_an_operator_is_the_same_in_the_spelling_of_dynamo_aten_and_prims() -> None:
    def add_in_place(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.add_(1)
        return y

    aten = aten_graph(lambda x: x + x, matrix())
    in_place = aten_graph(add_in_place, matrix())
    prims = make_fx(lambda x: torch.ops.prims.add(x, x))(matrix()).graph
    dynamo = torch.fx.symbolic_trace(lambda x: x + x).graph

    for name in ADD:
        assert refused(aten, name) == refused(in_place, name) == ["aten.add.Tensor"], name
        assert refused(prims, name) == ["prims.add.default"], name
        assert len(refused(dynamo, name)) == 1, name


def test_what_replaces_an_operator_in_place_is_not_that_operator() -> None:
    def in_place(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[0].exp_()
        y.view(-1).exp_()
        return y

    graph = aten_graph(in_place, matrix())

    assert refused(graph, "exp") == ["aten.exp.default"] * 2
    assert refused(graph, "view") == ["aten.view.default"] * 2


def test_an_overload_is_only_itself() -> None:
    graph = aten_graph(lambda x: x.sum() + x.sum(0), matrix())

    assert refused(graph, "aten.sum.dim_IntList") == ["aten.sum.dim_IntList"]


def test_a_function_that_aten_decomposes_stands_for_its_operators() -> None:
    graph = aten_graph(lambda x, y: F.linear(x, y) * 2, matrix(), matrix())

    assert refused(graph, "F.linear") == ["aten.t.default", "aten.mm.default"]
    assert refused(aten_graph(lambda x: x.softmax(0), matrix()), "softmax") == ["aten._softmax.default"]


def test_a_backward_operator_is_not_its_forward_operator() -> None:
    x = matrix().requires_grad_()
    graphs = aten_graphs(lambda one: one.tanh(), x)

    assert refused(graphs["backward"].graph, "tanh") == []
    assert refused(graphs["forward"].graph, "tanh") == [
        "aten.tanh.default"
    ]  # not of the detach that saves it


@pytest.mark.parametrize("name", ["torch.linalg.lux", "aten.linalg_lux", "nn.Conv2D"])
def test_a_name_that_torch_lacks_is_refused_since_it_would_never_match(name: str) -> None:
    with pytest.raises(ValueError, match="torch has no operator"):
        UnsupportedOpsConstraint([name])


def test_an_operator_of_another_library_has_its_namespace() -> None:
    @torch.library.custom_op("backendtest::add", mutates_args=())
    def add(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    add.register_fake(lambda x: torch.empty_like(x))
    graph = aten_graph(lambda x: add(x), matrix())

    assert refused(graph, "add") == []
    assert refused(graph, "backendtest::add") == ["backendtest.add.default"]
    assert node(graph, "backendtest.add.default")


def test_an_operator_with_effects_is_caught_in_the_node_that_orders_it() -> None:
    def prints(x: torch.Tensor) -> torch.Tensor:
        torch.ops.aten._print("x")
        return x + 1

    constraint = UnsupportedOpsConstraint(["aten._print"])

    violations = [one for one in map(constraint.check, aten_graph(prints, matrix()).nodes) if one]

    assert [one.operator for one in violations] == ["aten._print.default"]
