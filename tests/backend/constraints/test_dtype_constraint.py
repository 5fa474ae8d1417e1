"""Allowed dtypes, by object and by name."""

from __future__ import annotations

import pytest
import torch
from generated.aten_graphs import aten_graph, node

from tracing.backend.constraints import DtypeConstraint


def test_dtypes_and_their_names_mean_the_same() -> None:
    assert DtypeConstraint({torch.float32, torch.float16}) == DtypeConstraint(["half", "torch.float32"])


def test_a_name_that_is_no_dtype_is_refused_with_near_names() -> None:
    with pytest.raises(ValueError, match=r"'flaot32' is not a dtype of torch; nearest: float32"):
        DtypeConstraint({"flaot32"})


def test_an_operator_that_gives_float64_violates() -> None:
    graph = aten_graph(lambda x: x.double() * 2, torch.ones(2))

    violation = DtypeConstraint({"float32"}).check(node(graph, "aten.mul.Tensor"))

    assert violation is not None and (violation.found, violation.required) == ("float64", "float32")


def test_a_result_of_several_is_named() -> None:
    graph = aten_graph(lambda x: torch.max(x, dim=0)[0], torch.ones(2, 2))

    violation = DtypeConstraint({"float32", "int32"}).check(node(graph, "aten.max.dim"))

    assert violation is not None and violation.found == "result 1: int64"


def test_indices_are_looked_at_only_if_a_dtype_of_integers_is_named() -> None:
    graph = aten_graph(lambda x: torch.max(x, dim=0)[1], torch.ones(2, 2))
    indices = node(graph, "aten.max.dim")

    assert DtypeConstraint({"float32"}).check(indices) is None
    assert DtypeConstraint({"float32", "bool"}).check(indices) is not None
