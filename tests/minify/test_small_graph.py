"""Reduced graphs, executed in eager."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from tracing.analyze.minify.graph_edit import GraphEdit, Size, closed
from tracing.minify.captured_graph import CapturedGraph, captured_graphs
from tracing.minify.graph_results import graph_results
from tracing.minify.graph_trials import GraphTrials
from tracing.minify.predicate import Fails
from tracing.minify.recorded_values import StoredTensor
from tracing.minify.small_graph import SmallGraph, small_graph
from tracing.model import Case, Workload
from tracing.program.device import Device
from tracing.program.experiment import Experiment


def captured(fn: Callable[..., Any], *args: Any, backward: bool = False) -> CapturedGraph:
    case = Case("small", Path(__file__), "", lambda device: Workload(fn, args, backward=backward))
    (graph,) = captured_graphs(Experiment(case, Device("sm_90").host(), 0))
    return graph


def training(w: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    def step(x: torch.Tensor) -> torch.Tensor:
        loss = (w * x).sin().sum()
        loss.backward()
        torch.set_grad_enabled(False)
        torch._dynamo.graph_break()
        w.sub_(x)
        torch._dynamo.graph_break()
        torch.set_grad_enabled(True)
        return loss.detach()

    return step


def test_graphs_of_a_training_step_have_gradients_only_where_it_makes_them() -> None:
    step = training(torch.ones(3, requires_grad=True))
    case = Case("small", Path(__file__), "", lambda device: Workload(step, (torch.ones(3),)))
    graphs = captured_graphs(Experiment(case, Device("sm_90").host(), 0))
    small = [kept(one, *(node.name for node in one.calls)) for one in graphs]

    made = [{name for name in results(one) if name.startswith("grad of")} for one in small]

    assert made == [{"grad of l_w_"}, *[set()] * (len(graphs) - 1)]
    assert any(node.target == "sub_" for one in graphs for node in one.calls)


def kept(graph: CapturedGraph, *names: str, **more: Any) -> SmallGraph:
    return small_graph(graph, GraphEdit(0, names, **more))


def results(small: SmallGraph) -> dict[str, Any]:
    return graph_results(small, small.module)


def mixed(x: torch.Tensor) -> torch.Tensor:
    a = x.sin()
    b = a.reshape(-1)[2:]
    values, order = torch.sort(b)
    c = values * 2 + order.to(x.dtype)
    d = torch.stack([c, b]).unbind(0)
    return d[0] @ d[1]


def test_values_inside_of_vmap_are_no_parts_of_storages() -> None:
    graph = captured(lambda x: torch.vmap(torch.sin)(x).cos(), torch.ones(3, 4))

    stored = [name for name, one in graph.values.of.items() if isinstance(one, StoredTensor)]
    assert "cos" in stored and "sin" not in stored


def test_every_subset_of_nodes_gives_the_values_that_were_recorded() -> None:
    graph = captured(mixed, torch.rand(3, 4))
    names = [node.name for node in graph.nodes()]
    chance = random.Random(0)
    for _ in range(40):
        some = closed(graph.nodes(), [name for name in names if chance.random() < 0.5])
        small = kept(graph, *some)
        outputs = small.module(*small.arguments())
        for name, value in zip(small.returned, outputs, strict=True):
            recorded = graph.values.of[name]
            if isinstance(recorded, StoredTensor):
                whole = torch.empty(0, dtype=recorded.dtype)
                content = graph.values.content(recorded.storage, 1000).untyped_storage()
                expected = whole.set_(content, recorded.offset, recorded.shape, recorded.stride)
                assert torch.equal(value, expected), (some, name)


def overwritten(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    before = y + 1
    y.add_(5)
    after = y * 2
    return before + after


def test_an_input_holds_what_its_reader_read_after_a_write_in_place() -> None:
    graph = captured(overwritten, torch.zeros(3))

    assert results(kept(graph, "before"))["output 0"].tolist() == [1, 1, 1]
    assert results(kept(graph, "after"))["output 0"].tolist() == [10, 10, 10]


def viewed(x: torch.Tensor) -> torch.Tensor:
    base = x * 1
    row = base[0]
    row.add_(1)
    return base * 2


def test_inputs_that_share_a_storage_share_it_still() -> None:
    graph = captured(viewed, torch.zeros(2, 2))
    names = [node.name for node in graph.nodes()]
    small = kept(graph, *(name for name in names if name not in ("base", "row")))

    assert [small.inputs.shared(name) for name in small.inputs.stored] == [True, True]
    assert results(small)["output 0"].tolist() == [[2, 2], [0, 0]]


def test_a_write_to_an_input_is_a_result() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        x.mul_(3)
        return x.sum()

    graph = captured(fn, torch.ones(2))

    assert results(kept(graph, "mul_"))["input l_x_ afterwards"].tolist() == [3, 3]


def test_an_output_is_weighted_by_the_gradient_that_it_had() -> None:
    graph = captured(lambda x: (x.exp() * 7).sum(), torch.zeros(2, requires_grad=True), backward=True)

    assert results(kept(graph, "exp"))["grad of l_x_"].tolist() == [7, 7]


def test_a_smaller_size_keeps_the_order_of_dimensions_in_memory() -> None:
    graph = captured(lambda x: x.sin(), torch.rand(2, 6, 6).transpose(1, 2))
    small = kept(graph, "sin", sizes=(Size(6, 3, literals=True),))

    (one,) = small.arguments()
    assert (tuple(one.shape), one.stride()) == ((2, 3, 3), (9, 1, 3))


def test_a_smaller_size_changes_the_arguments_of_nodes() -> None:
    graph = captured(lambda x: x.view(2, 6).sum(1), torch.ones(12))
    names = [node.name for node in graph.nodes()]

    small = kept(graph, *names, sizes=(Size(12, 4, literals=True), Size(6, 2, literals=True)))

    assert results(small)["output 0"].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("change", "values"), [("zeros", [0, 0]), ("ones", [1, 1]), ("small integers", [2, 8])]
)
def test_inputs_get_simple_values(change: Any, values: list[float]) -> None:
    graph = captured(lambda x: x * 1, torch.tensor([1.7, 99.0]))
    small = kept(graph, *(node.name for node in graph.nodes()), changes=((change, "l_x_"),))

    assert results(small)["output 0"].tolist() == values


@triton.jit
def doubled(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at))


def test_the_kernels_and_operators_of_the_program_that_a_graph_calls_are_named() -> None:
    @torch.library.custom_op("minified::halved", mutates_args=())
    def halved(x: torch.Tensor) -> torch.Tensor:
        return x / 2

    halved.register_fake(torch.empty_like)

    def launches(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        doubled[(1,)](x, y, BLOCK=8)
        return halved(y).sin()

    case = Case(
        "small", Path(__file__), "", lambda device: Workload(launches, (torch.ones(8, device=device),))
    )
    trials = GraphTrials(Experiment(case, Device("sm_90"), 0), Fails())

    assert trials.hand_written(0) == ["doubled", "minified::halved"]
