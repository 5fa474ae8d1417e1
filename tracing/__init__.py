"""Record what torch.compile and Triton do, and find where two runs differ."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracing.model import Workload as Workload

__all__ = [
    "ComparisonConfig",
    "DebugMode",
    "KernelDiffHarness",
    "TritonKernelCall",
    "Workload",
    "compare_tensors",
]

_MODULES = {
    "ComparisonConfig": "tracing.numerics.tensor_diff",
    "DebugMode": "tracing.debug_mode.mode",
    "KernelDiffHarness": "tracing.numerics.kernel_diff",
    "TritonKernelCall": "tracing.debug_mode.kernel_call",
    "Workload": "tracing.model",
    "compare_tensors": "tracing.numerics.tensor_diff",
}


def __getattr__(name: str) -> Any:
    # Imported on demand: not every command needs torch, and scripts import `tracing.elf` before anything is
    # installed.
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
