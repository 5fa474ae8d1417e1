"""The graphs of a compile, the schedule of its code, and what is stored with a compiled graph."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch

from tracing.upstream.inductor import graphs as inductor_graphs
from tracing.upstream.inductor.graphs import GraphFacts, compiles_followed


class Enough(Exception):
    """Ends a compile when its code is generated, before a C++ compiler is called."""


class Listening:
    def __init__(self) -> None:
        self.traced_graphs = 0
        self.schedules: list[GraphFacts] = []
        self.codes: list[str] = []

    def traced(self, graph: torch.fx.GraphModule, compile_id: str) -> None:
        self.traced_graphs += 1

    def began(self, graph: torch.fx.GraphModule, compile_id: str, backward: bool) -> None:
        pass

    def lowered(self, graph: Any, code: str, schedule: GraphFacts) -> None:
        self.schedules.append(schedule)
        self.codes.append(code)
        raise Enough

    def failed(self, why: str) -> None:
        raise AssertionError(why)

    def ended(self) -> bytes | None:
        return None


def heard_of(function: Callable[..., Any], *args: torch.Tensor) -> Listening:
    listening = Listening()
    uncached = torch._inductor.config.patch(force_disable_caches=True)
    with compiles_followed(listening), uncached, suppress(Exception):
        torch.compile(function)(*args)
    torch._dynamo.reset()
    return listening


@pytest.fixture(scope="module")
def heard() -> Listening:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = (x.sin() @ y).cos()
        x.add_(1)
        return z

    return heard_of(function, torch.ones(3, 3), torch.ones(3, 3))


def test_its_contract_holds() -> None:
    inductor_graphs.contract()


def test_a_compile_has_one_graph_of_dynamo_and_one_that_is_lowered(heard: Listening) -> None:
    assert (heard.traced_graphs, len(heard.schedules)) == (1, 1)


def test_steps_are_kernels_and_operators_of_libraries_in_the_order_of_the_code(heard: Listening) -> None:
    steps, code = heard.schedules[0]["steps"], heard.codes[0]

    assert sorted(one["kind"] for one in steps) == ["kernel", "kernel", "library"]
    calls = [call["kernel"] for one in steps for call in one["calls"]]
    positions = [code.index(f"{kernel}(") for kernel in calls]
    assert len(calls) == 2 and positions == sorted(positions)


def test_a_buffer_has_the_node_whose_value_it_holds(heard: Listening) -> None:
    nodes = {one["node"] for one in heard.schedules[0]["buffers"].values()}

    assert {"sin", "mm", "cos"} <= nodes


def test_a_content_that_overwrites_an_input_is_known_by_its_location(heard: Listening) -> None:
    schedule = heard.schedules[0]

    (name,) = schedule["overwrites"]
    assert schedule["locations"][name] in schedule["inputs"]


def test_an_operator_of_a_library_that_takes_indices_has_a_schedule() -> None:
    def function(x: torch.Tensor, index: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.index_put(x, [None, index], y, True) + 1

    torch.use_deterministic_algorithms(True)
    try:
        listening = heard_of(function, torch.ones(3, 4), torch.tensor([0, 0]), torch.ones(3, 2))
    finally:
        torch.use_deterministic_algorithms(False)

    assert len(listening.schedules) == 1
    assert "IndexPutFallback" in {one["class"] for one in listening.schedules[0]["buffers"].values()}
