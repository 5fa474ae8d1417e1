"""Alignment of sizes, also of symbolic ones."""

from __future__ import annotations

import pytest
import torch
from generated.aten_graphs import aten_graph, node

from tracing.backend.constraints import ShapeConstraint
from tracing.backend.graph_check import check_graph
from tracing.model import Violation


def symbolic(
    constraint: ShapeConstraint, size: int = 24, least: int = 2, most: int | None = None, divisor: int = 1
) -> list[Violation]:
    """The violations of `x * 2` for a size of which a range and a divisor are known."""
    x = torch.ones(size)
    if most is not None:
        torch._dynamo.mark_dynamic(x, 0, min=least, max=most)
    else:
        torch._dynamo.mark_dynamic(x, 0)

    def double(x: torch.Tensor) -> torch.Tensor:
        torch._check(x.size(0) % divisor == 0)
        return x * 2

    return list(check_graph(aten_graph(double, x), [constraint]).violations)


def test_a_violation_states_node_operator_size_requirement_and_the_line_of_the_user() -> None:
    graph = aten_graph(lambda x, y: x @ y, torch.ones(8, 3), torch.ones(3, 12))

    violation = ShapeConstraint(alignment=8).check(node(graph, "aten.mm.default"))

    assert violation is not None
    assert (violation.operator, violation.found) == (
        "aten.mm.default", "size 12 of dimension 1, shape (8, 12)"
    )  # fmt: skip
    assert (violation.required, violation.decided) == ("a multiple of 8", True)
    assert violation.python.startswith("test_shape_constraint.py:") and "x @ y" in violation.code


def test_alignment_is_in_elements_whatever_the_dtype() -> None:
    graph = aten_graph(lambda x: x * 2, torch.ones(8, dtype=torch.uint8))

    assert ShapeConstraint(alignment=8).check(node(graph, "aten.mul.Tensor")) is None


def test_only_the_chosen_dimensions_count_and_lower_ranks_are_accepted() -> None:
    graph = aten_graph(lambda x: (x * 2, x.sum()), torch.ones(3, 8))

    assert check_graph(graph, [ShapeConstraint(8, (-1,))]).violations == []
    assert [one.node for one in check_graph(graph, [ShapeConstraint(8, (0,))]).violations] == [
        "arg0_1",
        "mul",
    ]


def test_sizes_of_0_and_1_are_accepted() -> None:
    graph = aten_graph(lambda x, y: (x * 2, y * 2), torch.ones(1, 8), torch.ones(0, 8))

    assert check_graph(graph, [ShapeConstraint(8)]).violations == []


def test_an_alignment_below_1_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ShapeConstraint(alignment=0)


def test_a_symbolic_size_is_undecided_even_if_the_size_of_this_call_is_a_multiple() -> None:
    assert [one.decided for one in symbolic(ShapeConstraint(8))] == [False, False]


@pytest.mark.parametrize("divisor", [8, 16, 48])
def test_a_guard_that_a_multiple_divides_a_size_decides_it(divisor: int) -> None:
    assert symbolic(ShapeConstraint(8), size=48, divisor=divisor) == []


def test_the_size_of_this_call_is_a_counterexample() -> None:
    violations = symbolic(ShapeConstraint(8), size=20)

    assert [one.decided for one in violations] == [True, True]
    assert "(20 in this call) of dimension 0" in violations[0].found


def test_a_range_of_one_multiple_decides_a_size() -> None:
    assert symbolic(ShapeConstraint(8), size=24, least=24, most=24) == []
