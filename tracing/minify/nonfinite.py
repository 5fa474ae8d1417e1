"""The values that a graph computes and that hold NaN or infinity, by the names of nodes and gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Interpreter, Node

from tracing.minify.recorded_values import tensors_of
from tracing.minify.small_graph import SmallGraph
from tracing.program.building import building
from tracing.program.structure import Facts

COMPILED = "compiled"  # a result of the compiled graph, where that of eager is finite


def nonfinite_values(small: SmallGraph, actual: Facts, expected: Facts) -> list[str]:
    """The nodes and gradients with NaN or infinity in eager; COMPILED in addition.

    actual, expected -- the results of the compiled graph, and those of eager

    Inputs are left out, as their values are recorded ones or finite, and so is memory that nothing has
    written yet, as of `torch.empty`. Cost: one execution in eager.
    """
    finder = _Finder(small.module)
    with building():
        given = small.arguments()
    finder.run(*given)
    in_eager = [name for name, one in expected.items() if _nonfinite(one)]
    gradients = [name for name in in_eager if name.startswith("grad of ")]
    new = any(_nonfinite(one) for name, one in actual.items() if name not in in_eager)
    return sorted({*finder.names, *gradients, *([COMPILED] if new else [])})


class _Finder(Interpreter):
    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.names: list[str] = []

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        unwritten = "empty" in getattr(n.target, "__name__", str(n.target))
        if n.op.startswith("call_") and not unwritten and any(map(_nonfinite, tensors_of(result))):
            self.names.append(n.name)
        return result


def _nonfinite(value: object) -> bool:
    return isinstance(value, torch.Tensor) and not bool(torch.isfinite(value).all())
