"""The compiled form of recording a launch by generated code that was recorded before.

It is used while there is one recording, on a machine with a C++ compiler; otherwise, and for every launch
that is new, `tracing.launch.hooks` calls its listeners. See tracing/native/launches.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias

import torch

from tracing.native.extension import NotCompiledError, extension
from tracing.upstream.patch import Method

# Makes the method that launches kernels: of its Python form, of the original, and of a threading.local
CompiledMethod: TypeAlias = Callable[[Method, Method, Any], Method]

_module: ModuleType | None = None


def wrapper() -> CompiledMethod | None:
    """Makes the method that replaces `CachingAutotuner.run`; None: it cannot be compiled on this machine."""
    global _module
    try:
        _module = extension("launches")
    except NotCompiledError:
        return None
    made: CompiledMethod = _module.launcher
    return made


def timers() -> Callable[[], Any] | None:
    """Makes what measures launches in C++, by events of CUDA's driver.

    The result has the methods of `tracing.record.launches.timers.LaunchTimers`. None: launches are recorded
    by Python, or the GPU is not NVIDIA's.
    """
    return _module.Timers if _module is not None and torch.version.hip is None else None


def record(known: object) -> None:
    """Let `known` record the launches that it knows; None: listeners receive every launch.

    known -- has the attributes of tracing.record.launches.known_launches.KnownLaunches
    """
    if _module is not None:
        _module.record(known)
