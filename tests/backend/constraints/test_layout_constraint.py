"""Strides of tensors in memory."""

from __future__ import annotations

import pytest
import torch
from generated.aten_graphs import aten_graph, aten_graphs

from tracing.backend.constraints import LayoutConstraint
from tracing.backend.graph_check import check_graph

IMAGE = torch.ones(2, 3, 4, 5)


def violations(
    constraint: LayoutConstraint, x: torch.Tensor, dynamic: bool = False
) -> list[tuple[str, bool]]:
    """The nodes of `(x * 2).transpose(0, 1) + 1` that violate, and whether that is decided."""
    graph = aten_graph(lambda one: (one * 2).transpose(0, 1) + 1, x, dynamic=dynamic)
    return [(one.operator, one.decided) for one in check_graph(graph, [constraint]).violations]


def test_a_transposed_view_is_accepted_and_what_is_computed_in_its_order_is_not() -> None:
    assert violations(LayoutConstraint(), IMAGE) == [("aten.add.Tensor", True)]


def test_views_violate_if_they_are_asked_for() -> None:
    nodes = violations(LayoutConstraint(views=True), IMAGE)

    assert nodes == [("aten.transpose.int", True), ("aten.add.Tensor", True)]


def test_a_view_that_is_saved_for_the_backward_is_no_other_than_in_the_forward() -> None:
    x, w = torch.ones(4, 6, requires_grad=True), torch.ones(8, 6)
    backward = aten_graphs(lambda x, w: x @ w.t(), x, w)["backward"].graph
    asked = check_graph(backward, [LayoutConstraint(views=True)]).violations

    assert check_graph(backward, [LayoutConstraint()]).violations == []
    assert [one.operator for one in asked][:1] == ["input"]


def test_symbolic_strides_are_decided_where_they_can_be() -> None:
    assert violations(LayoutConstraint(), IMAGE, dynamic=True) == [("aten.add.Tensor", True)]


def test_channels_last_refuses_contiguous_images_and_accepts_other_ranks() -> None:
    constraint = LayoutConstraint("channels_last")

    assert ("input", True) in violations(constraint, IMAGE)
    assert violations(constraint, torch.ones(2, 3)) == []
    graph = aten_graph(lambda x: x * 2, IMAGE.to(memory_format=torch.channels_last))
    assert check_graph(graph, [constraint]).violations == []


def test_strides_of_the_last_dimensions_can_be_required() -> None:
    constraint = LayoutConstraint(strides=(None, 1))
    graph = aten_graph(lambda x, y: (x * 2, y * 2), torch.ones(4, 8)[:, :4], torch.ones(4, 4).t())

    assert [one.node for one in check_graph(graph, [constraint]).violations] == ["arg1_1", "mul_1"]


@pytest.mark.parametrize("x", [torch.ones(3, 1, 2).as_strided((3, 1, 2), (2, 99, 1)), torch.ones(2, 0).t()])
def test_strides_of_single_and_of_no_elements_do_not_matter(x: torch.Tensor) -> None:
    graph = aten_graph(lambda one: one * 2, x)

    assert check_graph(graph, [LayoutConstraint()]).violations == []


def test_an_unknown_layout_is_refused() -> None:
    with pytest.raises(ValueError, match="'nhwc' is no layout"):
        LayoutConstraint("nhwc")  # type: ignore[arg-type]
