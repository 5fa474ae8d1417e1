"""Schemas of operators."""

from __future__ import annotations

import torch

from tracing.upstream.torch import operator_schemas


def test_the_contract_holds_with_the_installed_versions() -> None:
    operator_schemas.contract()


def test_an_operator_without_an_overload_has_its_only_one() -> None:
    aten = torch.ops.aten

    assert operator_schemas.overload_of(aten.clone) is aten.clone.default
    assert operator_schemas.overload_of(aten.add) is aten.add
    assert operator_schemas.overload_of(aten.add.Tensor) is aten.add.Tensor


def test_a_higher_order_operator_is_no_operator() -> None:
    assert not operator_schemas.is_operator(torch.ops.higher_order.cond)
