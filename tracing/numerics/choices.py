"""Choices that rounding may decide: what is equal, and on which side of a threshold a number is.

Exact arithmetic rarely makes two computed values equal, and neither does random rounding; a program may well,
as in `x.exp().log() == x`. The gradient of relu6 jumps where its input is 6: of an input next to it, either
gradient may be that of the program, and random rounding may show one of them in one run of a hundred. Whether
rounding decides is seen by how far it moves the difference of the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tracing.numerics.rounding import Noise
from tracing.numerics.shadow_storages import is_inexact
from tracing.numerics.ties import representable

# Rounding may move a difference so many times as far as it did in one run.
_REACH_OF_EQUALITY = 8.0
_REACH_OF_SIDE = 4.0
_COMPARING = ("aten::gt", "aten::ge", "aten::lt", "aten::le")
# By operator: the position of the argument, and the thresholds at which its result jumps.
_JUMPS: Mapping[str, Callable[[Sequence[Any]], tuple[int, Sequence[Any]]]] = {
    **dict.fromkeys(_COMPARING, lambda args: (0, args[1:2])),
    **dict.fromkeys(("aten::sign", "aten::sgn", "aten::heaviside"), lambda args: (0, (0.0,))),
    **dict.fromkeys(
        ("aten::hardsigmoid_backward", "aten::hardswish_backward"), lambda args: (1, (-3.0, 3.0))
    ),
    **dict.fromkeys(("aten::leaky_relu_backward", "aten::_prelu_kernel_backward"), lambda args: (1, (0.0,))),
    **dict.fromkeys(
        ("aten::hardshrink_backward", "aten::softshrink_backward"), lambda args: (1, (-args[2], args[2]))
    ),
    "aten::threshold_backward": lambda args: (1, args[2:3]),
    "aten::hardtanh_backward": lambda args: (1, args[2:4]),
    "aten::elu_backward": lambda args: (5, (0.0,)),
    "aten::hardshrink": lambda args: (0, (-args[1], args[1]) if len(args) > 1 else (-0.5, 0.5)),
}


class Choices:
    """The choices of one run of a program, in the order of their execution."""

    def __init__(self, exact: Choices | None = None) -> None:
        """exact -- those of the run without noise; None: this is that run"""
        self._exact = exact
        self._differences: list[torch.Tensor] = []  # of the operands, [*] floating or complex
        self._made = 0

    def sided(
        self, name: str, own: Sequence[Any], given: Any, noise: Noise | None, exact: Callable[[Any], bool]
    ) -> Any:
        """The args and kwargs of an operator, with numbers on either side of its thresholds, at random.

        Only those whose side rounding decides change; by as little as that takes.

        own   -- the program's own args
        given -- args and kwargs, its tensors in float64
        noise -- None: in the run without noise
        exact -- whether no element of one of the program's own tensors was rounded
        """
        args, kwargs = given
        position, thresholds = _jumps(name, args)
        if not thresholds:
            return given
        moved: torch.Tensor = args[position]
        known = exact(own[position]) and all(representable(one, own[position].dtype) for one in thresholds)
        if known and not name.startswith(_COMPARING):
            return (*args[:position], own[position].to(moved.dtype), *args[position + 1 :]), kwargs
        for threshold in thresholds:
            difference = moved - threshold
            before = self._exact_of(difference, noise)
            if before is not None and noise is not None:
                decides = _decides(difference, before, _REACH_OF_SIDE)
                distance = torch.maximum(difference.abs(), before.abs())
                side = torch.where(noise.uniform(distance) > 0, distance, -distance)
                moved = torch.where(decides, threshold + side, moved)
        return (*args[:position], moved, *args[position + 1 :]), kwargs

    def tested(self, name: str, given: Any, result: Any, noise: Noise | None) -> Any:
        """The result of an operator, drawn at random where it is a test for equality and rounding decides it.

        given  -- args and kwargs of the operator, its tensors in float64
        result -- as the operator gives it for them; of a test [*] bool
        noise  -- None: in the run without noise
        """
        difference = _difference(name, *given)
        exact = self._exact_of(difference, noise) if difference is not None else None
        if difference is None or exact is None or noise is None:
            return result
        decides = _decides(difference, exact, _REACH_OF_EQUALITY)
        return torch.where(decides, noise.uniform(result) > 0, result)

    def _exact_of(self, difference: torch.Tensor, noise: Noise | None) -> torch.Tensor | None:
        # in the run without noise; None: this is that run, or the program took another branch in it
        self._made += 1
        if self._exact is None or noise is None:
            self._differences.append(difference.clone())
            return None
        exact = self._exact._differences[self._made - 1 : self._made]
        return exact[0] if exact and exact[0].shape == difference.shape else None


def _jumps(name: str, args: Sequence[Any]) -> tuple[int, Sequence[Any]]:
    # the position of the argument, and the thresholds; none for whole and for complex numbers
    known = _JUMPS.get(name.partition(".")[0])
    position, thresholds = known(args) if known is not None else (0, ())
    number = args[position] if position < len(args) else None
    real = isinstance(number, torch.Tensor) and number.is_floating_point()
    return (position, thresholds) if real else (0, ())


def _decides(difference: torch.Tensor, exact: torch.Tensor, reach: float) -> torch.Tensor:
    moved = (difference - exact).abs()
    return (moved > 0) & (exact.abs() <= reach * moved)


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
