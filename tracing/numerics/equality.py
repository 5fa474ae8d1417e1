"""Which elements rounding may make equal, or unequal: of `==`, `!=` and conversions to bool.

Exact arithmetic rarely makes two computed values equal, and neither does random rounding; a program may well,
as in `x.exp().log() == x`. Whether rounding could is seen by how far it moves the difference of the operands.
"""

from __future__ import annotations

from typing import Any

import torch

from tracing.numerics.rounding import Noise
from tracing.numerics.shadow_storages import is_inexact

_REACH = 8.0  # rounding may move a difference so many times as far as it did in one run


class EqualityTests:
    """The tests for equality of one run of a program, in the order of their execution."""

    def __init__(self, exact: EqualityTests | None = None) -> None:
        """exact -- the tests of the run without noise; None: this is that run"""
        self._exact = exact
        self._differences: list[torch.Tensor] = []  # of the operands, [*] float64 or complex128
        self._made = 0

    def tested(self, name: str, given: Any, result: Any, noise: Noise | None) -> Any:
        """The result of an operator, drawn at random where it is such a test and rounding decides it.

        given  -- args and kwargs of the operator, its tensors in float64
        result -- as the operator gives it for them; of a test [*] bool
        noise  -- None: in the run without noise
        """
        difference = _difference(name, *given)
        if difference is None:
            return result
        self._made += 1
        if self._exact is None or noise is None:
            self._differences.append(difference.clone())
            return result
        exact = self._exact._differences[self._made - 1 : self._made]
        if not exact or exact[0].shape != difference.shape:
            return result  # the program took another branch
        moved = (difference - exact[0]).abs()
        decides = (moved > 0) & (exact[0].abs() <= _REACH * moved)
        return torch.where(decides, noise.uniform(result) > 0, result)


def _difference(name: str, args: Any, kwargs: Any) -> torch.Tensor | None:
    # None: no test of numbers that are rounded
    operands = (*args, *kwargs.values())
    if not any(is_inexact(one) for one in operands):
        return None
    base, first = name.partition(".")[0], operands[0]
    if base in ("aten::eq", "aten::ne"):
        return torch.as_tensor(first - operands[1])
    to_bool = base == "aten::_to_copy" and kwargs.get("dtype") == torch.bool
    return torch.as_tensor(first) if base == "aten::logical_not" or to_bool else None
