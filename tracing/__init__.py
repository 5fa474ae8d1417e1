"""Record what torch.compile and Triton do, and find where two runs differ."""

import importlib
from typing import TYPE_CHECKING, Any

from tracing.upstream.import_hook import unwarned

if TYPE_CHECKING:
    from tracing.backend.aot_mock import aot_mock_backend as aot_mock_backend
    from tracing.backend.mock import mock_backend as mock_backend
    from tracing.guards.inspector import GuardInspector as GuardInspector
    from tracing.model import Workload as Workload
    from tracing.numerics.kernel_diff import KernelDiffHarness as KernelDiffHarness
    from tracing.numerics.tensor_diff import ComparisonConfig as ComparisonConfig
    from tracing.numerics.tensor_diff import compare_tensors as compare_tensors
    from tracing.record.code_recording import recording as recording
    from tracing.record.steps import step as step

__all__ = [
    "ComparisonConfig",
    "DebugMode",
    "GuardInspector",
    "KernelDiffHarness",
    "TritonKernelCall",
    "Workload",
    "aot_mock_backend",
    "compare_tensors",
    "mock_backend",
    "recording",
    "step",
]

_MODULES = {
    "ComparisonConfig": "tracing.numerics.tensor_diff",
    "DebugMode": "tracing.debug_mode.mode",
    "GuardInspector": "tracing.guards.inspector",
    "KernelDiffHarness": "tracing.numerics.kernel_diff",
    "TritonKernelCall": "tracing.debug_mode.kernel_call",
    "Workload": "tracing.model",
    "aot_mock_backend": "tracing.backend.aot_mock",
    "compare_tensors": "tracing.numerics.tensor_diff",
    "mock_backend": "tracing.backend.mock",
    "recording": "tracing.record.code_recording",
    "step": "tracing.record.steps",
}


def __getattr__(name: str) -> Any:
    # Imported on demand: not every command needs torch, and scripts import `tracing.elf` before anything is
    # installed.
    if name in _MODULES:
        with unwarned():
            return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
