"""Backends of torch.compile that check graphs against the constraints of an accelerator."""

from tracing.backend.adapter import AcceleratorAdapter, Capabilities, accelerator
from tracing.backend.aot_mock import aot_mock_backend
from tracing.backend.mock import default_constraints, eager_backend, mock_backend
from tracing.backend.violation_error import ConstraintsViolated

__all__ = [
    "AcceleratorAdapter",
    "Capabilities",
    "ConstraintsViolated",
    "accelerator",
    "aot_mock_backend",
    "default_constraints",
    "eager_backend",
    "mock_backend",
]
