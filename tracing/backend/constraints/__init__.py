"""Constraints of an accelerator on tensors, operators and graphs."""

from tracing.backend.constraints.constraint import (
    Constraint,
    GraphConstraint,
    NodeConstraint,
    TensorConstraint,
)
from tracing.backend.constraints.dtypes import DtypeConstraint
from tracing.backend.constraints.layouts import LayoutConstraint
from tracing.backend.constraints.memory import MemoryConstraint, PeakMemoryConstraint
from tracing.backend.constraints.operators import SupportedOpsConstraint, UnsupportedOpsConstraint
from tracing.backend.constraints.shapes import ShapeConstraint

__all__ = [
    "Constraint",
    "DtypeConstraint",
    "GraphConstraint",
    "LayoutConstraint",
    "MemoryConstraint",
    "NodeConstraint",
    "PeakMemoryConstraint",
    "ShapeConstraint",
    "SupportedOpsConstraint",
    "TensorConstraint",
    "UnsupportedOpsConstraint",
]
