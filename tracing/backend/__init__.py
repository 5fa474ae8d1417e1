"""Backends of torch.compile that check graphs against what an accelerator requires."""

from tracing.backend.aot_mock import aot_mock_backend
from tracing.backend.mock import default_constraints, eager_backend, mock_backend
from tracing.backend.violation_error import ConstraintsViolated

__all__ = [
    "ConstraintsViolated",
    "aot_mock_backend",
    "default_constraints",
    "eager_backend",
    "mock_backend",
]
