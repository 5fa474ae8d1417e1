"""Integers that torch leaves undefined explain a difference; others do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tracing.numerics.reference import reference


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
@pytest.mark.parametrize("operator", [torch.Tensor.to, torch.ops.prims.convert_element_type])
def test_integers_of_numbers_out_of_range_are_not_defined(operator: Any, dtype: torch.dtype) -> None:
    x = torch.tensor([float("nan"), 1e30, float("-inf"), 100.5, 2.5])
    expected = reference(lambda: {"output": operator(x * 1, dtype) + 1})["output"]

    assert (expected.spread > 0).tolist() == [True, True, True, False, False]


def test_bool_of_any_number_is_defined() -> None:
    x = torch.tensor([float("nan"), 1e30, 0.0])

    assert not reference(lambda: {"output": (x * 1).to(torch.bool)})["output"].spread.any()
