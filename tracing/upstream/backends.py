"""Triton's backends: the targets, the stages of each, and ptxas. Imports no torch."""

from __future__ import annotations

from pathlib import Path

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
]


def default_assembler(arch: int) -> Path:
    """The ptxas with which the NVIDIA backend assembles for a compute capability times ten: 90."""
    return Path(nvidia_compiler.get_ptxas(arch).path)


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require({"nvidia", "amd"} <= backends.keys(), "the backends nvidia and amd")
    stages: dict[str, object] = {}
    backend = make_backend(GPUTarget("cuda", 90, 32))
    backend.add_stages(stages, backend.parse_options({}), Language.TRITON)
    require([*stages] == ["ttir", "ttgir", "llir", "ptx", "cubin"], "the stages from ttir to cubin")
    require_parameters(type(backend).make_cubin, "src", "metadata", "opt", "capability")
