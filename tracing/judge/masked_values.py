"""Finds out which NaNs and infs of a fused launch's operators reach what the launch stores.

A program may mask a NaN, as by `torch.where`. One that reaches memory is missing there if its operator
computes a finite number instead: the graph is executed once for each operator, with its own NaNs and with
numbers in place of those of the others, and once with numbers in place of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tracing.analyze.nonfinite.nonfinite_operator import Made
from tracing.judge.fx_program import FxPlan, FxProgram, Given
from tracing.store.graph_file import FxNode
from tracing.upstream.torch.pytrees import tree_leaves

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

        Cost: at most four times as many executions of the plan as there are makers.
        """
        if not any(bool(one.any()) for one in self._stored({}, 0.0)):
            return []
        return [node for node in makers if self._reaches(node, makers)]

    def _reaches(self, node: str, makers: Mapping[str, Made]) -> bool:
        alike = {name: made for name, made in makers.items() if made == makers[node]}
        others = {name: made for name, made in alike.items() if name != node}
        for number in _NUMBERS:
            pairs = zip(self._stored(others, number), self._stored(alike, number), strict=True)
            if any(bool((own & ~none).any()) for own, none in pairs):
                return True
        return False

    def _stored(self, replaced: Mapping[str, Made], number: float) -> Sequence[torch.Tensor]:
        # where a stored value is one of the kind, if some nodes compute a number instead
        def replace(node: FxNode, result: Any) -> None:
            if node.name in replaced:
                for tensor in tensors_in(result):
                    tensor.masked_fill_(is_made(tensor, replaced[node.name]), number)

        values = self.program.run(self.plan, self.given, replace)
        return [is_made(one, self.kind) for value in values.values() for one in tensors_in(value)]


def is_made(tensor: torch.Tensor, kind: Made) -> torch.Tensor:
    """[*] bool: where elements are NaN, or inf."""
    return torch.isnan(tensor) if kind == "nan" else torch.isinf(tensor)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in a result of an operator."""
    return [one for one in tree_leaves(value) if isinstance(one, torch.Tensor)]
