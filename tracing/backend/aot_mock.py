"""A backend of torch.compile that checks the graphs of AOTAutograd and compiles them with Inductor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from tracing.backend.check_record import current_record
from tracing.backend.constraints.constraint import Constraint
from tracing.backend.mock import Backend, default_constraints
from tracing.backend.repro import repro_script
from tracing.backend.violation_error import ConstraintsViolated, decided, warn
from tracing.environment.mock_settings import mock_settings
from tracing.model import GraphKind
from tracing.upstream.inductor.backend_compile import inductor_compiled

_NAME = "aot_mock_backend"


def aot_mock_backend(strict: bool | None = None, constraints: Sequence[Constraint] | None = None) -> Backend:
    """A backend that checks each ATen graph separately and compiles it with Inductor.

    strict      -- True: a graph with violations raises ConstraintsViolated before it is compiled, a backward
                   at its first call; False: violations are logged as warnings; None: MOCK_STRICT decides
    constraints -- None: those of `mock_backend`

    The graphs are those that Inductor lowers, after its decompositions and joint-graph passes. They are
    recorded, and outside of a recorded case also Inductor's code and the kernels' IR.
    """

    def aot_mock(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        settings = mock_settings()
        asked = default_constraints(settings) if constraints is None else constraints
        raising = settings.strict if strict is None else strict
        record = current_record()
        # Inductor may change the graph, and the backward is checked later
        script = repro_script(graph, inputs, _NAME, asked) if raising else ""

        @contextmanager
        def around(aten: torch.fx.GraphModule, kind: GraphKind) -> Iterator[None]:
            _, check = record.checked(aten, kind, _NAME, asked)
            violations = decided({kind: check.violations})
            if raising and violations:
                raise ConstraintsViolated(_NAME, violations, record.repro(script))
            warn(_NAME, kind, check.violations)
            with record.compile():
                yield

        return inductor_compiled(graph, inputs, around)

    return aot_mock


def aot_mock_from_environment(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
    """The backend "aot_mock_backend" of torch.compile, with strictness and constraints of the environment."""
    return aot_mock_backend()(graph, inputs)
