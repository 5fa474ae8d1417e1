"""Describe an accelerator for torch.compile and `tracing check`: its capabilities and its compiler.

An adapter is looked up by the name under which a package registers its class in the group
`tracing_accelerators` of entry points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

import torch

from tracing.backend.check_record import current_record
from tracing.backend.constraints import (
    DtypeConstraint,
    LayoutConstraint,
    MemoryConstraint,
    PeakMemoryConstraint,
    ShapeConstraint,
    SupportedOpsConstraint,
    UnsupportedOpsConstraint,
)
from tracing.backend.constraints.constraint import Constraint
from tracing.backend.constraints.layouts import MemoryLayout
from tracing.backend.mock import Backend
from tracing.backend.operator_names import OperatorName
from tracing.backend.repro import repro_script
from tracing.backend.violation_error import ConstraintsViolated, decided, warn
from tracing.errors import Problem
from tracing.model import GraphKind
from tracing.upstream.inductor.backend_compile import aot_compiled

GROUP = "tracing_accelerators"


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of an accelerator; None and empty values limit nothing."""

    dtypes: Collection[torch.dtype | str] | None = None
    operators: Collection[OperatorName] | None = None  # all constraints of the accelerator
    unsupported_operators: Collection[OperatorName] = ()
    alignment: int = 1  # elements
    aligned_dimensions: Sequence[int] | None = None  # None: all
    tensor_bytes: int | None = None  # of one tensor
    memory_bytes: int | None = None  # of all tensors that are alive at once
    layout: MemoryLayout | None = None

    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints that a graph must meet to run on it."""
        chosen: list[Constraint] = []
        if self.alignment > 1:
            chosen.append(ShapeConstraint(self.alignment, self.aligned_dimensions))
        if self.dtypes is not None:
            chosen.append(DtypeConstraint(self.dtypes))
        if self.tensor_bytes is not None:
            chosen.append(MemoryConstraint(self.tensor_bytes))
        if self.memory_bytes is not None:
            chosen.append(PeakMemoryConstraint(self.memory_bytes))
        if self.layout is not None:
            chosen.append(LayoutConstraint(self.layout))
        if self.operators is not None:
            chosen.append(SupportedOpsConstraint(self.operators))
        if self.unsupported_operators:
            chosen.append(UnsupportedOpsConstraint(self.unsupported_operators))
        return tuple(chosen)


class AcceleratorAdapter(ABC):
    """One accelerator; a subclass states its `name` and capabilities, and compiles graphs."""

    name: str

    @abstractmethod
    def capabilities(self) -> Capabilities:
        """The capabilities of the accelerator."""

    def compile(self, graph: torch.fx.GraphModule, kind: GraphKind) -> Callable[..., Any]:
        """Compile an ATen graph to a function of its inputs; by default the graph is executed in eager."""
        return graph

    def backend(self, *, strict: bool = True) -> Backend:
        """A backend of torch.compile that checks and records each ATen graph, and compiles it.

        strict -- True: violations raise ConstraintsViolated before anything is executed; False: a graph that
                  violates a constraint is executed in eager, with warnings
        """
        constraints = self.capabilities().constraints()

        def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
            record = current_record()

            def compiler(aten: torch.fx.GraphModule, kind: GraphKind) -> Callable[..., Any]:
                _, check = record.checked(aten, kind, self.name, constraints)
                violations = decided({kind: check.violations})
                if strict and violations:
                    script = repro_script(graph, inputs, "mock_backend", constraints)
                    raise ConstraintsViolated(self.name, violations, record.repro(script))
                warn(self.name, kind, check.violations)
                function: Callable[..., Any] = aten if violations else self.compile(aten, kind)
                return lambda inputs: function(*inputs)

            return aot_compiled(graph, inputs, compiler)

        backend.__name__ = self.name  # the name of the backend in a run
        return backend


def accelerator(name: str) -> AcceleratorAdapter:
    """The adapter that an installed package registers under a name; raises Problem if none does."""
    registered = {one.name: one for one in entry_points(group=GROUP)}
    if name not in registered:
        known = ", ".join(sorted(registered)) or "none"
        raise Problem(
            f"no installed package registers an accelerator {name!r}; registered: {known}",
            f"register the class of its adapter in the group {GROUP} of entry points",
        )
    adapter = registered[name].load()()
    if not isinstance(adapter, AcceleratorAdapter):
        raise Problem(
            f"the accelerator {name!r} is a {type(adapter).__name__}, not an AcceleratorAdapter",
            f"correct the entry point {registered[name].value}",
        )
    return adapter
