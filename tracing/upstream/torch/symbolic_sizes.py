"""Query ranges, guards and the example value of symbolic sizes, without adding guards."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from tracing.upstream.contract import require


def known(condition: Any) -> bool | None:
    """True if a condition on sizes holds for all values that ranges and guards allow.

    False: it fails in this call, or in every call. None: it holds in this call, or the sizes depend on data,
    and other calls may violate it. No guard is added.
    """
    if isinstance(condition, bool):
        return condition
    if statically_known_true(condition):
        return True
    negated = torch.sym_not(condition)  # type: ignore[no-untyped-call, unused-ignore]
    return False if condition.node.hint is False or statically_known_true(negated) else None


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
        require(known(size > 4) is None, "a size that guards do not decide")
        require(known(size > 5) is False and example(size) == 5, "the value of a size in this call")
        return graph.forward

    torch.compile(lambda x: x * 2, backend=look, dynamic=True)(torch.ones(5))
    require(seen, "a graph with a symbolic size")
    torch.compiler.reset()
