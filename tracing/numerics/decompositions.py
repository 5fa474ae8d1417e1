"""What an operator of ATen computes, in terms of simpler ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch._decomp import decomposition_table


def decomposition(operator: Any) -> Callable[..., Any] | None:
    """A function of the operator's arguments that calls simpler operators; None: there is none."""
    return decomposition_table.get(operator)
