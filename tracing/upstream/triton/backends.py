"""Triton's backends: the targets, the stages of each, and ptxas. Imports no torch."""

from __future__ import annotations

from pathlib import Path
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
    require_parameters(type(backend).make_cubin, "src", "metadata", "opt", "capability")
