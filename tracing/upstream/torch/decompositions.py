"""An operator of ATen in terms of simpler operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table

from tracing.upstream.contract import require

aten = torch.ops.aten
# whose decomposition makes a matrix of [n, n] of n elements
_SQUARE = {aten.cumsum.default, aten.cumsum.out, aten.cumsum_.default, aten.cumprod.default, aten.cumprod.out,
           aten.cumprod_.default}  # fmt: skip


def decomposition(operator: Any) -> Callable[..., Any] | None:
    """A function of its arguments that calls simpler operators; None: there is none, or a far slower one."""
    return None if operator in _SQUARE else decomposition_table.get(operator)


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    gelu = decomposition(torch.ops.aten.gelu.default)
    require(gelu is not None, "a decomposition of gelu")
    assert gelu is not None
    x = torch.linspace(-1, 1, 5)
    require(torch.allclose(gelu(x), torch.nn.functional.gelu(x)), "a decomposition that computes gelu")
    require(decomposition(torch.ops.aten.mm.default) is None, "no decomposition of a matrix product")
    require(decomposition_table.keys() >= _SQUARE, "decompositions of cumulative sums and products")
