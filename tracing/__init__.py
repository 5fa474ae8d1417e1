"""Record what torch.compile and Triton do, and find where two runs differ."""

import importlib
from typing import Any

from tracing.model import Workload

__all__ = ["DebugMode", "TritonKernelCall", "Workload"]

_MODULES = {"DebugMode": "tracing.debug_mode.mode", "TritonKernelCall": "tracing.debug_mode.kernel_call"}


def __getattr__(name: str) -> Any:
    # torch is imported when one of these is asked for, not by every command
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
