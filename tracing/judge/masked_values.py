"""Finds out which NaNs and infs of a fused launch's operators reach what the launch stores.

A program may mask a NaN, as by `torch.where`. One that reaches memory is missing there if its operator
computes a finite number instead: the graph is executed once for each operator, with its own NaNs and with
numbers in place of those of the others, and once with numbers in place of all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tracing.analyze.nonfinite.nonfinite_operator import Made
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.fx_values import FxPlan, Given
from tracing.store.graph_file import FxNode
from tracing.upstream.torch.pytrees import tree_tensors

_NUMBERS = (1.0, 0.5, 3.0)  # one may become a NaN itself: 1 in log(x - 1)


@dataclass(frozen=True, slots=True)
class MaskedValues:
    """The values that a launch stores, and how to compute them."""

    program: FxProgram
    given: Given
    plan: FxPlan  # its targets are what the launch stores
    kind: Made  # what it stores

    def reaching(self, makers: Mapping[str, Made]) -> list[str]:
        """The nodes, of those that make a NaN or inf, of which one is stored, too.

        makers -- by node: what it makes

        Cost: an execution of the plan for each maker, and some; three for one that is masked.
        """
        if not any(bool(one.any()) for one in self._stored({}, 0.0)):
            return []
        reached: set[str] = set()
        for kind in dict.fromkeys(makers.values()):
            alike = {node: made for node, made in makers.items() if made == kind}
            for number in _NUMBERS:
                reached |= self._reaching(alike, alike.keys() - reached, number)
        return [node for node in makers if node in reached]

    def _reaching(self, alike: Mapping[str, Made], asked: Collection[str], number: float) -> set[str]:
        none = self._stored(alike, number) if asked else ()
        reached = set()
        for node in asked:
            own = self._stored({name: made for name, made in alike.items() if name != node}, number)
            if any(bool((one & ~other).any()) for one, other in zip(own, none, strict=True)):
                reached.add(node)
        return reached

    def _stored(self, replaced: Mapping[str, Made], number: float) -> Sequence[torch.Tensor]:
        # where a stored value is one of the kind, if some nodes compute a number instead
        def replace(node: FxNode, result: Any) -> None:
            if node.name in replaced:
                for tensor in tree_tensors(result):
                    tensor.masked_fill_(is_made(tensor, replaced[node.name]), number)

        values = self.program.run(self.plan, self.given, replace)
        return [is_made(one, self.kind) for value in values.values() for one in tree_tensors(value)]


def is_made(tensor: torch.Tensor, kind: Made) -> torch.Tensor:
    """[*] bool: where elements are NaN, or inf."""
    return torch.isnan(tensor) if kind == "nan" else torch.isinf(tensor)
