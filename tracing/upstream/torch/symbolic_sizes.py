"""What torch knows of a symbolic size: ranges and guards, without a guard of our own."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._sympy.numbers import int_oo

from tracing.upstream.contract import require


def known(condition: Any) -> bool | None:
    """Whether a condition on sizes holds for all values that ranges and guards allow; None: for some."""
    if isinstance(condition, bool):
        return condition
    if statically_known_true(condition):
        return True
    return False if statically_known_true(torch.sym_not(condition)) else None  # type: ignore[no-untyped-call, unused-ignore]


def bounds(size: torch.SymInt) -> tuple[int | None, int | None]:
    """The least and the greatest value that a size can have; None: there is no such bound."""
    ranges = size.node.shape_env.bound_sympy(size.node.expr)
    lower, upper = ranges.lower, ranges.upper
    return (
        None if lower in (-int_oo, int_oo) or not lower.is_finite else int(lower),
        None if upper in (-int_oo, int_oo) or not upper.is_finite else int(upper),
    )


def example(size: int | torch.SymInt) -> int | None:
    """The value of a size in the call that is compiled; None: it depends on data."""
    return size if isinstance(size, int) else size.node.hint


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    seen: list[torch.SymInt] = []

    def look(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        seen.extend(one for one in inputs if isinstance(one, torch.SymInt))
        size = seen[0]
        require(known(size >= 2) is True and known(size < 2) is False, "what guards say of a size")
        require(known(size > 100) is None, "a size that guards do not decide")
        require(bounds(size)[0] == 2 and example(size) == 5, "the range and the value of a size")
        return graph.forward

    torch.compile(lambda x: x * 2, backend=look, dynamic=True)(torch.ones(5))
    require(seen, "a graph with a symbolic size")
    torch.compiler.reset()
