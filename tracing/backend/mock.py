"""A backend of torch.compile that checks graphs and executes them in eager."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from tracing.backend.check_record import current_record
from tracing.backend.constraints import (
    DtypeConstraint,
    LayoutConstraint,
    MemoryConstraint,
    ShapeConstraint,
    UnsupportedOpsConstraint,
)
from tracing.backend.constraints.constraint import Constraint
from tracing.backend.repro import repro_script
from tracing.backend.violation_error import ConstraintsViolated, decided, warn
from tracing.environment.mock_settings import MockSettings, mock_settings
from tracing.model import GraphKind, Violation
from tracing.upstream.inductor.backend_compile import aot_compiled

Backend: TypeAlias = Callable[[torch.fx.GraphModule, Sequence[Any]], Any]

_log = logging.getLogger(__name__)
_DTYPES = ("bfloat16", "bool", "float16", "float32", "int16", "int32", "int64", "int8", "uint8")
_OPERATORS = ("linalg.lu", "linalg.lu_factor", "linalg.lu_factor_ex", "conv_transpose3d")


def default_constraints(settings: MockSettings) -> tuple[Constraint, ...]:
    """The constraints of the mocked accelerator: no float64, contiguous tensors, no LU decomposition."""
    return (
        ShapeConstraint(settings.alignment),
        DtypeConstraint(_DTYPES),
        MemoryConstraint(settings.max_memory),
        LayoutConstraint(),
        UnsupportedOpsConstraint(_OPERATORS),
    )


def mock_backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
    """Check a graph with the settings of the environment, and execute it in eager: `backend=mock_backend`.

    Reads MOCK_STRICT, MOCK_ALIGNMENT and MOCK_MAX_MEMORY when a graph is compiled.

    Raises ConstraintsViolated, unless MOCK_STRICT is 0.
    """
    return eager_backend()(graph, inputs)


def eager_backend(strict: bool | None = None, constraints: Sequence[Constraint] | None = None) -> Backend:
    """A backend that checks the ATen graphs of a program, its backward's too, and executes it in eager.

    strict      -- True: violations raise ConstraintsViolated before anything is executed; False: they are
                   logged as warnings; None: MOCK_STRICT decides
    constraints -- None: `default_constraints` of the environment's settings

    The graphs are recorded (`tracing.backend.check_record`). Results are eager's, bit by bit: Dynamo's graph
    is executed, and the ATen graphs are only checked.
    """

    def mock(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        settings = mock_settings()
        asked = default_constraints(settings) if constraints is None else constraints
        return _checked(graph, inputs, settings.strict if strict is None else strict, asked)

    mock.__name__ = "mock_backend"  # the name of the backend in a run
    return mock


def _checked(
    graph: torch.fx.GraphModule, inputs: Sequence[Any], strict: bool, constraints: Sequence[Constraint]
) -> Any:
    record = current_record()
    violations: dict[GraphKind, Sequence[Violation]] = {}

    def compiler(aten: torch.fx.GraphModule, kind: GraphKind) -> Callable[..., Any]:
        _, check = record.checked(aten, kind, "mock_backend", constraints)
        violations[kind] = check.violations
        return lambda inputs: aten(*inputs)

    try:
        aot_compiled(graph, inputs, compiler)
    except Exception as error:  # eager may execute what AOTAutograd cannot trace
        if strict:
            raise
        why = f"AOTAutograd cannot trace it: {type(error).__name__}: {str(error).splitlines()[0]}"
        record.unchecked(why)
        _log.warning("mock_backend: a graph was not checked: %s", why)
    if strict and decided(violations):
        script = repro_script(graph, inputs, "mock_backend", constraints)
        raise ConstraintsViolated("mock_backend", decided(violations), record.repro(script))
    for kind, part in violations.items():
        warn("mock_backend", kind, part)
    return graph.forward
