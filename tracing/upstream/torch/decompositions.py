"""An operator of ATen in terms of simpler operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table

from tracing.upstream.contract import require


def decomposition(operator: Any) -> Callable[..., Any] | None:
    """A function of the operator's arguments that calls simpler operators; None: there is none."""
    return decomposition_table.get(operator)


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    gelu = decomposition(torch.ops.aten.gelu.default)
    require(gelu is not None, "a decomposition of gelu")
    assert gelu is not None
    x = torch.linspace(-1, 1, 5)
    require(torch.allclose(gelu(x), torch.nn.functional.gelu(x)), "a decomposition that computes gelu")
    require(decomposition(torch.ops.aten.mm.default) is None, "no decomposition of a matrix product")
