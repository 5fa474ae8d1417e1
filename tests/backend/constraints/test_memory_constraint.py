"""Bytes of one tensor, and of all that are alive."""

from __future__ import annotations

import torch
from generated.aten_graphs import aten_graph, aten_graphs, node

from tracing.backend.constraints import MemoryConstraint, PeakMemoryConstraint
from tracing.backend.liveness import memory_use, peak


def test_a_tensor_is_too_large_by_its_bytes() -> None:
    graph = aten_graph(lambda x: x.double(), torch.ones(100))
    cast = node(graph, "aten._to_copy.default")

    assert MemoryConstraint(800).check(cast) is None
    violation = MemoryConstraint(799).check(cast)
    assert violation is not None and violation.found == "800 bytes: float64 (100,)"


def test_the_peak_is_larger_than_any_tensor_and_names_its_node() -> None:
    graph = aten_graph(lambda x: (x.sin() + x.cos()).sum(), torch.ones(100))

    assert [use.total for use in memory_use(graph)] == [800, 1200, 1600, 804]
    assert PeakMemoryConstraint(1600).check_graph(graph) is None
    violation = PeakMemoryConstraint(1599).check_graph(graph)
    assert violation is not None and violation.operator == "aten.add.Tensor"
    assert violation.found == "1,600 bytes in 4 tensors at once"


def test_views_take_no_memory_and_keep_what_they_view_alive() -> None:
    graph = aten_graph(lambda x: x.sin().view(10, 10).t().cos().sum(), torch.ones(100))

    assert peak(graph) is not None
    assert [use.total for use in memory_use(graph)] == [800, 800, 800, 1200, 804]


def test_in_a_backward_what_its_forward_holds_is_alive_and_what_was_saved_is_freed() -> None:
    x, y = torch.ones(100, requires_grad=True), torch.ones(50, requires_grad=True)
    graph = aten_graphs(lambda x, y: (x.sin().exp(), y + 1), x, y)["backward"].graph
    held = (100 + 50) * 2 * 4 + 50 * 4  # inputs, results, and the gradient that is returned as it is

    uses = [(use.node.target.overloadpacket.__name__, use.total - held) for use in memory_use(graph)]

    assert uses == [("detach", 400), ("mul", 800), ("cos", 800), ("mul", 1200)]


def test_a_symbolic_peak_is_decided_by_the_range_of_its_size() -> None:
    x = torch.ones(16)
    torch._dynamo.mark_dynamic(x, 0, min=8, max=64)
    graph = aten_graph(lambda one: one.sin(), x)

    def decided(limit: int) -> bool | None:
        violation = PeakMemoryConstraint(limit).check_graph(graph)
        return None if violation is None else violation.decided

    assert [decided(limit) for limit in (2 * 16 * 4 - 1, 2 * 16 * 4, 2 * 64 * 4)] == [True, False, None]
