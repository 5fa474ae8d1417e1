"""Record what torch.compile and Triton do, and find where two runs differ."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracing.model import Workload as Workload

__all__ = ["DebugMode", "TritonKernelCall", "Workload"]

_MODULES = {
    "DebugMode": "tracing.debug_mode.mode",
    "TritonKernelCall": "tracing.debug_mode.kernel_call",
    "Workload": "tracing.model",
}


def __getattr__(name: str) -> Any:
    # Imported on demand: not every command needs torch, and scripts import `tracing.elf` before anything is
    # installed.
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
