"""Triton's backends: the targets, the stages of each, and ptxas. Imports no torch."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from triton.backends import backends
from triton.backends.compiler import GPUTarget, Language
from triton.backends.nvidia import compiler as nvidia_compiler
from triton.compiler.compiler import make_backend
from triton.runtime.errors import PTXASError

from tracing.upstream.contract import require, require_parameters

# the package that holds a module for each backend
PACKAGE = "triton.backends."

__all__ = [
    "PACKAGE",
    "GPUTarget",
    "Language",
    "PTXASError",
    "backends",
    "default_assembler",
    "make_backend",
    "options_of",
    "ptx_version",
]


def default_assembler(arch: int) -> Path:
    """The ptxas with which the NVIDIA backend assembles for a compute capability times ten: 90."""
    return Path(nvidia_compiler.get_ptxas(arch).path)


def ptx_version(options: Any, target: GPUTarget) -> int | None:
    """The PTX version for which the NVIDIA backend compiles, 86 for 8.6; None for another backend.

    options -- of the backend; without a version there, ptxas is asked, and torch names a ptxas of its own
    """
    if target.backend != "cuda":
        return None
    version: int = nvidia_compiler.get_ptx_version_from_options(options, target.arch)
    return version


@functools.cache
def _options(target: GPUTarget) -> Sequence[str]:
    return [one.name for one in dataclasses.fields(make_backend(target).parse_options({}))]


def options_of(metadata: Any) -> dict[str, str]:
    """The compiler options of a compiled kernel, as Python writes them: {"maxnreg": "64"}.

    metadata -- of the kernel; out of Triton's cache it has lists for tuples
    """
    values = {name: getattr(metadata, name) for name in _options(metadata.target) if hasattr(metadata, name)}
    return {name: repr(tuple(one) if isinstance(one, list) else one) for name, one in values.items()}


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require({"nvidia", "amd"} <= backends.keys(), "the backends nvidia and amd")
    stages: dict[str, object] = {}
    backend = make_backend(GPUTarget("cuda", 90, 32))
    backend.add_stages(stages, backend.parse_options({}), Language.TRITON)
    require([*stages] == ["ttir", "ttgir", "llir", "ptx", "cubin"], "the stages from ttir to cubin")
    require(
        ptx_version(backend.parse_options({"ptx_version": 86}), GPUTarget("cuda", 90, 32)) == 86,
        "a PTX version",
    )
    metadata = SimpleNamespace(target=GPUTarget("cuda", 90, 32), maxnreg=64, name="k")
    require(options_of(metadata) == {"maxnreg": "64"}, "the options of a kernel")
    require_parameters(type(backend).make_cubin, "src", "metadata", "opt", "capability")
