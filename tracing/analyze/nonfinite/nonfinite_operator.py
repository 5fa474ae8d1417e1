"""The operator, among those that a fused kernel computes, that makes a NaN or inf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.store.graph_file import PythonLine

Made: TypeAlias = Literal["nan", "inf"]


@dataclass(frozen=True, slots=True)
class NonFiniteOperator:
    """An operator of a graph that computes a NaN, or an inf, from values that are none, in eager.

    What the program masks, as by torch.where, is left out where that is known.
    """

    makes: Made
    name: str  # "aten::log.default"
    line: PythonLine | None
    index: tuple[int, ...] = ()  # of the first such element of its result, if the operator is pointwise
    operands: tuple[complex, ...] = ()  # what it reads for that element, numbers included
    backward: bool = False  # in the graph of a backward; the line is that of the forward
    stored: bool = True  # False: not certain, the program may mask what it makes
